"""Scores as tables, words, cards and files; what all results keep has its contract."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from exact_values import same
from interaction_scores import made_up_scores, scores_of
from numpy.testing import assert_array_equal
from refusals import refusals

from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.interactions import InteractionScores
from propopt.interactions.inference import ErrorRange


COLUMNS = (
    "feature_1 feature_2 score se se_mc se_total ci_low ci_high stat p_one p_two "
    "p_adj reject n_patches_min degenerate effective_rows used"
)


def test_a_table_has_a_row_for_each_set_with_its_names(rng):
    made = made_up_scores(rng)
    frame = made.to_frame()
    assert " ".join(frame.columns) == COLUMNS
    names = (frame["feature_1"] + frame["feature_2"]).tolist()
    assert " ".join(names) == "ab ac ad ae bc bd be cd ce de"
    for column, values in {
        "score": made.scores,
        "se": made.standard_errors,
        "se_mc": made.monte_carlo,
        "se_total": made.total_errors,
        "n_patches_min": made.counts,
        "stat": made.scores / made.total_errors,
        "p_one": made.p_values("greater"),
        "p_two": made.p_values("two-sided"),
    }.items():
        assert_array_equal(frame[column], values)
    for order in (1, 3):
        reference = list(made_up_scores(rng, order=order).to_frame().columns)
        features = [f"feature_{k + 1}" for k in range(order)]
        assert reference[: order + 1] == [*features, "score"]
    made = made_up_scores(rng, names=("age", 1, "c", "d", "e"))
    assert made.labels.points[:2] == ("age × 1", "age × c")
    assert made.labels.features == ("age", "1", "c", "d", "e")
    assert_array_equal(made.intervals(0.8), made.intervals(level=0.8))


def test_the_largest_and_the_most_negative_come_first_and_pairs_are_a_matrix(rng):
    made = made_up_scores(rng)
    ordered = np.sort(made.scores)
    assert_array_equal(made.top(3)["score"], ordered[::-1][:3])
    assert_array_equal(made.most_negative(2)["score"], ordered[:2])
    best = made.top(1, level=0.99, adjust="holm")
    frame = made.to_frame(level=0.99, adjust="holm")
    pd.testing.assert_frame_equal(best, frame.loc[best.index])
    with pytest.raises(InvalidInput, match="k: expected an integer >= 1, got 0"):
        made.top(0)
    matrix = made.matrix()
    assert_array_equal(matrix, matrix.T)
    assert np.isnan(np.diag(matrix)).all()
    assert_array_equal(matrix[tuple(made.sets.T)], made.scores)
    with pytest.raises(InvalidInput, match="expected pairs, got sets of 3"):
        made_up_scores(rng, order=3).matrix()


def with_unused(rng, not_used, **fields):
    """Scores of sets with features that are not used are zero, without error."""
    drawn = made_up_scores(rng, order=fields.get("order", 2))
    used = ~np.isin(drawn.sets, not_used).any(axis=1)
    for name in ("scores", "standard_errors", "monte_carlo"):
        fields[name] = np.where(used, getattr(drawn, name), 0.0)
    return made_up_scores(rng, not_used=not_used, **fields)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_file_has_all_that_scores_may_have(rng, tmp_path, order):
    made = with_unused(
        rng,
        (0, 3),
        order=order,
        effective_rows=np.array(np.nan),
        patch_error=0.002,
        columns=(("a",), (0, 1), ("c", "d"), ("e",), ("f",)),
        error_range=ErrorRange(0.0, 2.5, proved=True),
        n_patches=1500,
        n_row_groups=7,
        quantity=Quantity(model="Ridge", outcome="price", position=1),
        main=made_up_scores(rng, order=1, names=(0, 1, 2, 3, "four")),
    )
    made.save(tmp_path / "scores")
    loaded = InteractionScores.load(tmp_path / "scores.npz")
    assert same(loaded, made)
    assert loaded.main.main is None
    pd.testing.assert_frame_equal(loaded.to_frame(), made.to_frame())
    # names that are no numbers are text
    names = (("x", 1), np.int64(4), 2.5, "d", "e")
    made_up_scores(rng, names=names).save(tmp_path / "names.npz")
    loaded = InteractionScores.load(tmp_path / "names.npz")
    assert loaded.names == ("('x', 1)", 4, 2.5, "d", "e")


def single(**fields):
    return scores_of("ab", {(0,): 1.0, (1,): 2.0}, order=1, **fields)


CARRIED = {"effective_rows": np.array([2.5, 40.0, 60.0])}
NO_ERROR = {"monte_carlo": np.array([np.nan, 0.001, 0.001])}
ALIKE = {"standard_errors": np.array([0.0, 0.1, 0.1])}
AS_SEEN, PROVED = (
    {**ALIKE, "error_range": ErrorRange(0.0, 2.0, proved)} for proved in (False, True)
)
FEW_PATCHES = {
    "standard_errors": np.full(3, 0.1),
    "monte_carlo": np.array([0.8, 0.05, 0.25]),
}
SOME = [0.2, 0.1, 0.3]
CAUTIONS = [  # scores, fields, the number of clear ones, the numbers of the caution
    (SOME, CARRIED, 3, r"error of 1 pair \(at least 2\.5\)"),
    (SOME, NO_ERROR, 2, "patches is unknown for 1 pair"),
    (
        [0.0, 0.1, 0.3],
        AS_SEEN,
        1,
        r"1 pair: .* 0 to 2 \(observed\)\. .* 50 rows",
    ),
    ([0.0, 0.1, 0.3], PROVED, 1, r"1 pair: .* 0 to 2\. .* 50 rows"),
    (
        SOME,
        {**FEW_PATCHES, "n_patches": 1500},
        0,
        "2 of 3 pairs: .* up to 8 times .* n_patches=96000 or more",
    ),
    (SOME, FEW_PATCHES, 0, "64 times as many"),
]


@pytest.mark.parametrize(("fields", "message"), refusals(__file__, "scores"))
def test_what_cannot_be_loaded_is_not_saved(rng, tmp_path, fields, message):
    path = tmp_path / "scores.npz"
    match = rf"^(.* cannot be saved: )?(main(\.|: ))?{message}"
    with pytest.raises(InvalidInput, match=match):
        made_up_scores(rng, main=made_up_scores(rng, **eval(fields))).save(path)
    assert not list(tmp_path.iterdir())


def sure(rng, estimates, **fields):
    """Scores of sets of three features, with some errors and counts."""
    count = len(estimates)
    defaults = {
        "scores": np.array(estimates),
        "standard_errors": np.full(count, 0.01),
        "monte_carlo": np.zeros(count),
        "counts": np.ones(count),
    }
    return made_up_scores(rng, n_features=3, **{**defaults, **fields})


@pytest.mark.parametrize(("estimates", "fields", "clear", "message"), CAUTIONS)
def test_what_is_told_to_be_doubtful(rng, estimates, fields, clear, message):
    made = sure(rng, estimates, **fields)
    (caution,) = made.cautions
    assert re.search(message, caution)
    document = made.document()
    assert document.dangers == (caution,)
    if fields.keys() != FEW_PATCHES.keys() and "n_patches" not in fields:
        assert document.facts["clear"].value == f"{clear} of 3 pairs"
    intervals = document.blocks[0].frame["interval"].tolist()
    assert intervals.count("unknown") == np.isnan(made.total_errors).sum()
    assert not sure(rng, [0.2, -0.1, 3.0]).cautions
    patches = {**FEW_PATCHES, "monte_carlo": np.full(3, 0.1)}
    assert not sure(rng, SOME, **patches).cautions


def test_features_that_are_not_used_score_zero_with_that_word(rng):
    made = with_unused(rng, (1,))
    mask = (made.sets == 1).any(axis=1)
    assert mask.sum() == 4
    assert_array_equal(made.intervals()[mask], np.zeros((4, 2)))
    for alternative in ("two-sided", "greater", "less"):
        assert_array_equal(made.p_values(alternative)[mask], np.ones(4))
    frame = made.to_frame()
    assert_array_equal(~frame["used"], mask)
    assert not (frame["reject"] | frame["degenerate"])[mask].any()
    assert ">not used<" in made._repr_html_()


def test_a_card_has_the_largest_and_counts_of_all():
    values = {(j, k): (-1.0) ** k * (j + k) for k in range(6) for j in range(k)}
    made = scores_of("abcdef", values, n_candidates=1225, n_patches=800)
    document = replace(made, patch_error=0.0015).document()
    table = document.blocks[0]
    sizes = [abs(low + high) for low, high, _ in table.bars["score"]]
    assert sizes[:10] == [9, 8, 7, 7, 6, 6, 5, 5, 5, 4]
    assert table.total == 15
    lines = [line for *_, line in table.bars["score"]]
    order = np.argsort(-np.abs(made.scores), kind="stable")
    np.testing.assert_array_equal(lines, made.intervals()[order])
    facts = document.facts
    assert facts["clear"].value == "15 of 15 pairs"
    assert facts["clear"].note == "9 below 0"
    assert facts["patches"].value == 800
    assert "0.15%" in facts["patches"].note
    assert "patches" not in scores_of("abcdef", values).document().facts

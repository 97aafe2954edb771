"""Scores as tables, words, cards and files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    ARRAYS,
    WEIRD,
    Members,
    header_of,
    members_of,
    npy,
    signed,
    with_header,
    write,
)

from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.interactions import InteractionScores, scores
from propopt.interactions.inference import ErrorRange
from propopt.results.result import Result
from tests.support.interaction_scores import made_up_scores, scores_of


COLUMNS = [
    "feature_1",
    "feature_2",
    "estimate",
    "se",
    "se_mc",
    "se_total",
    "ci_low",
    "ci_high",
    "stat",
    "p_one",
    "p_two",
    "p_adj",
    "reject",
    "leak",
    "n_patches_min",
    "degenerate",
    "effective_rows",
    "used",
]


def test_a_table_has_a_row_for_each_set_with_its_names(rng):
    scores = made_up_scores(rng, leak=rng.normal(size=10))
    frame = scores.to_frame()
    assert list(frame.columns) == COLUMNS
    assert list(zip(frame["feature_1"], frame["feature_2"], strict=True))[:5] == [
        ("a", "b"),
        ("a", "c"),
        ("a", "d"),
        ("a", "e"),
        ("b", "c"),
    ]
    for column, values in {
        "estimate": scores.estimates,
        "se": scores.standard_errors,
        "se_mc": scores.monte_carlo,
        "se_total": scores.total_errors,
        "leak": scores.leak,
        "n_patches_min": scores.counts,
        "stat": scores.estimates / scores.total_errors,
        "p_one": scores.p_values("greater"),
        "p_two": scores.p_values("two-sided"),
    }.items():
        np.testing.assert_array_equal(frame[column], values)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_of_any_order_there_are_as_many_names(rng, order):
    frame = made_up_scores(rng, order=order).to_frame()
    assert list(frame.columns[:order]) == [f"feature_{k + 1}" for k in range(order)]
    assert frame.columns[order] == "estimate"


def test_the_largest_and_the_most_negative_come_first(rng):
    scores = made_up_scores(rng)
    ordered = np.sort(scores.estimates)
    np.testing.assert_array_equal(scores.top(3)["estimate"], ordered[::-1][:3])
    np.testing.assert_array_equal(scores.most_negative(2)["estimate"], ordered[:2])
    best = scores.top(1, level=0.99, adjust="holm")
    pd.testing.assert_frame_equal(
        best, scores.to_frame(level=0.99, adjust="holm").loc[best.index]
    )
    with pytest.raises(InvalidInput, match="k: expected an integer >= 1, got 0"):
        scores.top(0)


def test_pairs_are_a_symmetric_matrix_and_other_sets_are_none(rng):
    scores = made_up_scores(rng)
    matrix = scores.matrix()
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.isnan(np.diag(matrix)).all()
    for (j, k), estimate in zip(scores.sets, scores.estimates, strict=True):
        assert matrix[j, k] == estimate
    with pytest.raises(InvalidInput, match="expected pairs, got sets of 3"):
        made_up_scores(rng, order=3).matrix()


def test_a_csv_file_reads_back(rng, tmp_path):
    scores = made_up_scores(rng, names=("=1+1", "b", "c", "d", "e"))
    scores.to_csv(tmp_path / "scores.csv")
    table = pd.read_csv(tmp_path / "scores.csv")
    assert table["feature_1"][0] == "'=1+1"
    numbers = [name for name in COLUMNS if "feature" not in name]
    pd.testing.assert_frame_equal(
        table[numbers], scores.to_frame()[numbers], check_exact=True
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_saved_file_is_the_same_scores(rng, tmp_path, order):
    scores = with_unused(
        rng,
        (0, 3),
        order=order,
        leak=np.array(0.1),
        effective_rows=np.array(np.nan),
        notes=("one", "two"),
        columns=(("a",), (0, 1), ("c", "d"), ("e",), ("f",)),
        error_range=ErrorRange(0.0, 2.5, proved=True),
        n_patches=1500,
        n_row_groups=7,
        quantity=Quantity(model="Ridge", outcome="price", position=1),
        main=made_up_scores(rng, order=1, names=(0, 1, 2, 3, "four")),
    )
    scores.save(tmp_path / "scores")
    loaded = InteractionScores.load(tmp_path / "scores.npz")
    assert_same(loaded, scores)
    assert loaded.main is not None
    assert_same(loaded.main, scores.main)
    assert loaded.main.main is None
    pd.testing.assert_frame_equal(loaded.to_frame(), scores.to_frame())


def with_unused(rng, not_used, **fields) -> InteractionScores:
    """Scores of sets with features that are not used are zero, without error."""
    drawn = made_up_scores(rng, order=fields["order"])
    used = ~np.isin(drawn.sets, not_used).any(axis=1)
    for name in ("estimates", "standard_errors", "monte_carlo"):
        fields[name] = np.where(used, getattr(drawn, name), 0.0)
    return made_up_scores(rng, not_used=not_used, **fields)


def assert_same(loaded: InteractionScores, scores: InteractionScores | None) -> None:
    for name, value in vars(scores).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(loaded, name), value, strict=True)
        elif name != "main":
            assert getattr(loaded, name) == value


def test_names_that_are_no_numbers_are_text_once_saved(rng, tmp_path):
    names = (("x", 1), np.int64(4), 2.5, "d", "e")
    made_up_scores(rng, names=names).save(tmp_path / "scores.npz")
    loaded = InteractionScores.load(tmp_path / "scores.npz")
    assert loaded.names == ("('x', 1)", 4, 2.5, "d", "e")


def single(**fields: Any) -> InteractionScores:
    return scores_of("ab", {(0,): 1.0, (1,): 2.0}, order=1, **fields)


BROKEN = [
    ({"sets": np.array([[0, 5]] * 10)}, "sets: expected ascending places from 0 to 4"),
    ({"sets": np.array([[-1, 3]] * 10)}, "sets: expected ascending places"),
    ({"sets": np.array([[1, 0]] * 10)}, "sets: expected ascending places"),
    ({"sets": np.array([[1, 1]] * 10)}, "sets: expected ascending places"),
    ({"sets": np.zeros((10, 0))}, "sets: expected ascending places"),
    ({"sets": np.full((10, 2), 0.5)}, "sets: expected integers"),
    ({"sets": np.arange(10)}, "sets: expected 2 dimensions"),
    ({"estimates": np.zeros(9)}, r"estimates: expected shape \(10,\), got \(9,\)"),
    ({"estimates": np.full(10, np.inf)}, "estimates: 10 of 10 values are not finite"),
    ({"standard_errors": np.full(10, -1.0)}, "standard_errors: expected numbers >= 0"),
    ({"monte_carlo": np.full(10, -1.0)}, "monte_carlo: expected numbers >= 0"),
    ({"counts": np.full(10, np.nan)}, "counts: 10 of 10 values are not finite"),
    ({"effective_rows": np.array(-1.0)}, "effective_rows: expected numbers >= 0"),
    ({"n_candidates": 9}, "n_candidates: expected at least the sets"),
    ({"n_rows": 0}, "n_rows: expected an integer >= 1, got 0"),
    ({"units": "\ud800"}, "units: expected text"),
    ({"not_used": (5,)}, "not_used: expected places of features"),
    ({"not_used": (1, 1)}, "not_used: expected each feature once"),
    ({"not_used": (1,)}, "not_used: expected scores 0, without error, of"),
    ({"n_row_groups": -1}, "n_row_groups: expected an integer >= 0, got -1"),
    ({"columns": (("a",), ("b",))}, "columns: expected those of each feature"),
    ({"columns": ((),) * 5}, "columns: expected at least one of each feature"),
    ({"columns": (("a",), ("b",), ("c",), ("d",), ())}, "columns: expected at least"),
    ({"n_groups": 0}, "monte_carlo: expected 0 without groups"),
    ({"n_row_groups": 51}, "n_row_groups: expected at most the rows"),
    ({"effective_rows": np.array(50.1)}, "effective_rows: expected no more rows"),
    ({"error_range": ErrorRange(1.0, 0.0, True)}, "error_range: expected two numbers"),
    ({"leak": np.zeros(3)}, "leak: expected shape"),
    ({"main": scores_of("abcde", {(0, 1): 1.0})}, "main: expected single features"),
    ({"main": single(main=single())}, "main: expected single features"),
]


def save(rng, path, fields, *, in_main):
    own = made_up_scores(rng, **fields)
    (made_up_scores(rng, main=own) if in_main else own).save(path)


@pytest.mark.parametrize(("fields", "message"), BROKEN)
@pytest.mark.parametrize("in_main", [False, True])
def test_what_cannot_be_loaded_is_not_saved(rng, tmp_path, fields, message, in_main):
    match = rf"^(.* cannot be saved: )?(main(\.|: ))?{message}"
    with pytest.raises(InvalidInput, match=match):
        save(rng, tmp_path / "scores.npz", fields, in_main=in_main)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def saved(rng, tmp_path):
    main = made_up_scores(rng, order=1)
    made_up_scores(rng, main=main, notes=("one",)).save(tmp_path / "scores.npz")
    return tmp_path / "scores.npz"


def test_files_of_something_else_are_refused(saved):
    members = members_of(saved)
    write(saved, signed({**members, "main.main.sets.npy": members["sets.npy"]}))
    with pytest.raises(InvalidInput, match=r"it also has the array 'main.main.sets'"):
        InteractionScores.load(saved)
    write(saved, signed(with_header(members, {**header_of(members), "columns": []})))
    with pytest.raises(InvalidInput, match="columns: expected a list"):
        InteractionScores.load(saved)
    less = {name: data for name, data in members.items() if name != "leak.npy"}
    write(saved, signed(less))
    with pytest.raises(InvalidInput, match="not saved interactions: it has no leak"):
        InteractionScores.load(saved)
    write(saved, {**members, "leak.npy": npy(np.ones(10))})
    with pytest.raises(InvalidInput, match="its digest is not that of what it holds"):
        InteractionScores.load(saved)


def forged(members: Members) -> Iterator[Members]:
    """Every key of both headers and every array with something else in it."""
    for inside in (False, True):
        for key in header_of(members):
            for odd in WEIRD:
                header = header_of(members)
                own: Any = header["main"] if inside else header
                own[key] = odd
                yield with_header(members, header)
    for name in members.keys() - {"header.npy"}:
        for array in ARRAYS:
            yield {**members, name: npy(array)}


@pytest.mark.parametrize("before", [False, True])
def test_a_forgery_that_is_signed_loads_as_scores_or_not_at_all(saved, before):
    old = Path(__file__).parents[1] / "results" / "before" / "interactions.npz"
    loaded = 0
    for members in forged(members_of(old if before else saved)):
        write(saved, members if before else _as_signed(members))
        try:
            scores = InteractionScores.load(saved)
        except InvalidInput as error:
            message = str(error)
            assert message.startswith(f"{saved}: ")
            continue
        loaded += 1
        assert len(scores.to_frame()) == len(scores)
        assert str(scores)
    assert 0 < loaded < 150  # other text, other counts: what contradicts nothing


def _as_signed(members: Members) -> Members:
    try:
        return signed(members)
    except ValueError:  # arrays of objects have no digest
        return members


def test_scores_are_a_result_and_read_only(rng):
    scores = made_up_scores(rng)
    assert isinstance(scores, Result)
    with pytest.raises(ValueError, match="read-only"):
        scores.estimates[0] = 1.0
    assert len(scores) == 10


# words


def sure(rng: np.random.Generator, estimates: list[float], **fields: object):
    count = len(estimates)
    return made_up_scores(
        rng,
        n_features=3,
        order=fields.pop("order", 2),
        estimates=np.array(estimates),
        standard_errors=np.full(count, 0.01),
        monte_carlo=np.zeros(count),
        counts=np.ones(count),
        **fields,
    )


def test_a_score_that_main_effects_leak_is_no_interaction(rng):
    scores = sure(rng, [0.2, -0.1, 3.0], leak=np.array([0.2, -0.1, 0.2]))
    (caution,) = scores.cautions
    assert caution == (
        "Excluding zero is no finding: patches of one size leak -0.1 to 0.2 into "
        "scores. 1 interval goes beyond. Draw columns='bernoulli'."
    )
    assert not sure(rng, [0.2, -0.1, 3.0]).cautions


def test_scores_between_zero_and_the_leak_are_no_interaction(rng):
    # an interval that is above zero and below the leak excludes both
    scores = sure(rng, [0.3, -0.3, 0.0], leak=np.array([2.0, -2.0, 0.1]))
    assert scores.card().title.startswith("No pair of 3 clearly matters")
    assert "0 intervals go beyond." in str(scores.cautions)


def test_of_an_error_without_closed_form_the_leak_is_not_known(rng):
    scores = sure(rng, [0.2, -0.1, 3.0], leak=np.array(np.nan), error="absolute")
    (caution,) = scores.cautions
    assert "how much is unknown for absolute errors. Draw columns=" in caution
    assert not scores.to_frame(against="leak")["reject"].any()
    assert scores.card().title.startswith("No pair of 3 clearly matters")


def test_rows_that_say_little_are_told(rng):
    few = sure(rng, [0.2, 0.1, 0.3], effective_rows=np.array([2.5, 40.0, 60.0]))
    (caution,) = few.cautions
    assert caution == (
        "Fewer than 10 rows carry the error of 1 pair (at least 2.5). A normal law is "
        "doubtful there: judge more rows."
    )
    unknown = sure(rng, [0.2, 0.1, 0.3])
    vars(unknown)["monte_carlo"] = np.array([np.nan, 0.001, 0.001])
    (caution,) = unknown.cautions
    assert caution.startswith("The error of few patches is unknown for 1 pair: a row")
    assert "its error is not known" in str(unknown)


@pytest.mark.parametrize("proved", [True, False])
def test_equal_rows_are_told_with_the_range_that_is_assumed(rng, proved):
    scores = sure(rng, [0.0, 0.1, 0.3], error_range=ErrorRange(0.0, 2.0, proved))
    vars(scores)["standard_errors"] = np.array([0.0, 0.1, 0.1])
    (caution,) = scores.cautions
    assert caution.startswith("All rows score alike in 1 pair: intervals assume errors")
    assert caution.endswith("Judge over 50 rows.")
    assert "within 0 to 2" in caution
    assert ("(as seen)" in caution) is not proved


def test_patches_that_limit_are_told_with_the_number_that_would_do(rng):
    errors = np.array([0.8, 0.05, 0.25])
    scores = sure(rng, [0.2, 0.1, 0.3], n_patches=1500)
    vars(scores)["standard_errors"] = np.full(3, 0.1)
    vars(scores)["monte_carlo"] = errors
    assert scores.cautions == (
        "Few patches limit 2 of 3 pairs: their error is up to 8 times that of rows. "
        "Take n_patches=96000 or more.",
    )
    vars(scores)["n_patches"] = 0  # of a source that does not know it
    assert "Take 64 times as many or more." in scores.cautions[0]
    vars(scores)["monte_carlo"] = np.full(3, 0.1)
    assert not scores.cautions


def everything_to_say(rng: np.random.Generator, **fields: object) -> InteractionScores:
    """Scores of sets of four features of which each caution is to be told."""
    scores = made_up_scores(
        rng, n_features=8, order=4, n_patches=1500, not_used=(7,), **fields
    )
    count = len(scores)
    errors, patches = np.full(count, 0.01), np.full(count, 0.08)
    errors[0], patches[1] = 0.0, np.nan
    own = {"standard_errors": errors, "monte_carlo": patches}
    own["effective_rows"] = np.full(count, 2.5)
    vars(scores).update(own)
    return scores


@pytest.mark.parametrize(
    "fields",
    [
        {"leak": np.array(-0.123456)},
        {"leak": np.array(np.nan), "error": "absolute"},
        {"leak": np.array(0.1), "n_row_groups": 12_345},
        {"leak": np.array(0.1), "error_range": ErrorRange(-1234.5, 1234.5, True)},
    ],
)
def test_each_caution_is_a_verdict_a_number_and_what_to_do_in_25_words(rng, fields):
    cautions = everything_to_say(rng, **fields).cautions
    assert len(cautions) == len(scores.CAUTIONS) == 6
    for caution in cautions:
        assert len(caution.split()) <= 25, caution
        assert caution.endswith(".")
        assert re.search(r"\b(Draw|Take|Leave|Judge|judge) \S+", caution), caution
        if "unknown" not in caution:
            assert re.search(r"\d", caution), caution


def test_features_that_are_not_used_score_zero_with_that_word(rng):
    scores = made_up_scores(rng, not_used=(1,), estimates=np.zeros(10))
    own = (scores.sets == 1).any(axis=1)
    assert own.sum() == 4
    for name in ("standard_errors", "monte_carlo"):
        vars(scores)[name] = np.where(own, 0.0, getattr(scores, name))
    np.testing.assert_array_equal(scores.intervals()[own], np.zeros((4, 2)))
    for alternative in ("two-sided", "greater", "less"):
        np.testing.assert_array_equal(scores.p_values(alternative)[own], np.ones(4))
    frame = scores.to_frame()
    np.testing.assert_array_equal(~frame["used"], own)
    assert not (frame["reject"] | frame["degenerate"])[own].any()
    assert ">not used<" in scores._repr_html_()


def test_one_line_tells_what_and_how(rng):
    scores = sure(rng, [2.0, -1.0, 0.001])
    assert repr(scores) == (
        "InteractionScores(3 pairs; 3 features; 50 rows; squared error; minipatches; "
        "largest a × b 2 ± 0.01)"
    )


CARD = """\
1 pair of 4 matters jointly to predicted price, beyond what each feature does alone; \
in 1 each stands in for the other
squared error of predicted price: rise without one feature, plus rise without the \
other, less rise without both; in squared euros; 500 rows
  <b>\\x1b × b     +2  +1.78 to +2.22
  b × c           -1  -1.22 to -0.776
  <b>\\x1b × c  +0.01  -0.214 to +0.234
  c × d            –  its error is not known
a note
intervals: 90 %, all 4 together · for new rows and the predictors as they are fitted \
here"""


def card_scores(**fields: Any) -> InteractionScores:
    return scores_of(
        ("<b>\x1b", "b", "c", "d"),
        {(0, 1): 2.0, (1, 2): -1.0, (0, 2): 0.01, (2, 3): np.nan},
        quantity=Quantity(model="Ridge", outcome="price"),
        units="squared euros",
        notes=("a note",),
        **fields,
    )


def test_a_card_tells_what_was_found_of_whom_with_intervals():
    assert str(card_scores()) == CARD


def test_a_card_of_a_page_escapes_names_draws_lines_and_folds_settings():
    html = card_scores()._repr_html_()
    seen, folded = html.split("<details")
    assert "&lt;b&gt;\\x1b × b" in seen
    assert "<b>" not in html
    assert "\x1b" not in html
    assert seen.count("background:currentColor") == 3  # none where it is not known
    assert seen.count("background:#") == 3
    assert "−1.22 to −0.776" in seen
    assert "nan" not in html
    for setting in ("Ridge", "by hand", "not with those of another"):
        assert setting in folded
        assert setting not in seen


def test_a_card_of_many_has_the_largest_and_tells_of_the_others():
    values = {(j, k): (-1.0) ** k * (j + k) for k in range(6) for j in range(k)}
    scores = scores_of("abcdef", values, n_candidates=1225)
    card = scores.card()
    assert [abs(row.value) for row in card.rows] == [9, 8, 7, 7, 6, 6, 5, 5, 5, 4]
    assert card.rest == "5 others, at most 4 in size; 5 of them clearly not zero"
    assert "all 1,225 together" in card.proof
    assert card.title.startswith("6 pairs of 15 matter jointly, beyond")
    assert card.title.endswith("; in 9 each stands in for the other")


@pytest.mark.parametrize(
    ("order", "estimates", "title"),
    [
        (1, [0.5, 0.1, 0.001], "2 features of 3 matter: errors are larger without "
            "them"),
        (1, [0.5, -0.1, 0.0], "1 feature of 3 matters: errors are larger without it; "
            "errors are smaller without 1 other"),
        (1, [-0.5, -0.1, 0.0], "No feature of 3 clearly matters; errors are smaller "
            "without 2 features"),
        (2, [0.0, 0.0, 0.0], "No pair of 3 clearly matters jointly, beyond what each "
            "feature does alone"),
        (3, [0.5], "1 triple of 1 matters jointly, beyond what fewer features do"),
        (3, [-0.5], "No triple of 1 clearly matters jointly, beyond what fewer "
            "features do; what 1 of them do is had from fewer features"),
    ],
)  # fmt: skip
def test_the_headline_is_a_finding(rng, order, estimates, title):
    assert sure(rng, estimates, order=order).card().title == title


def test_the_headline_counts_no_score_that_main_effects_leak(rng):
    scores = sure(rng, [0.2, 0.1, 3.0], leak=np.array([0.2, np.nan, 0.2]))
    assert scores.card().title.startswith("1 pair of 3 matters jointly")
    assert any("Excluding zero is no finding" in line for line in scores.card().lines)


def test_the_headline_of_a_classifier_names_its_classes(rng):
    quantity = Quantity(model="Tree", kind="probability")
    named = quantity.of_outcome("churn")
    for own, whom in ((quantity, "Tree"), (named, "churn")):
        title = sure(rng, [2.0, 0.0, 0.0], quantity=own).card().title
        assert title.startswith(
            f"1 pair of 3 matters jointly to probabilities of {whom},"
        )


@pytest.mark.parametrize(
    ("n_groups", "aim"), [(20, "any number of patches"), (0, "as they are fitted here")]
)
def test_a_card_says_what_intervals_are_for(rng, n_groups, aim):
    scores = sure(rng, [2.0, -1.0, 0.001], n_groups=n_groups)
    assert "· for new rows and " in scores.card().proof
    assert aim in scores.card().proof


def test_scores_have_the_names_of_all_results(rng):
    scores = made_up_scores(rng, names=("age", 1, "c", "d", "e"))
    assert scores.labels.points[:2] == ("age × 1", "age × c")
    assert scores.labels.features == ("age", "1", "c", "d", "e")
    np.testing.assert_array_equal(scores.intervals(0.8), scores.intervals(level=0.8))

"""Trade-offs in one file: every explanation comes back, or the file is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    craft,
    header_of,
    members_of,
    npy,
    with_header,
    write,
    write_signed,
)

import propopt as po
from propopt.base.errors import InvalidInput, Refused, SolverFailure, UnsolvedWarning
from propopt.results.explanation import is_lazy
from propopt.solvers.curves import Spectral


NAMES, ROWS = ["age", "dose"], list("pqrst")
G = pd.DataFrame(
    np.random.default_rng(5).normal(size=(5, 2)), columns=NAMES, index=ROWS
)
OBJECTIVE = po.GradientMatching(G) + po.PairwiseRobustness(po.chain_graph(5))
CUBE = po.functions.Power(3)
FIELDS = (
    "method",
    "labels",
    "parameters",
    "weights",
    "losses",
    "certificate",
    "multipliers",
    "solver",
    "seconds",
    "units",
    "evaluations",
)


def swept():
    noisy = po.explainers.SmoothGrad(scale=0.1, n_samples=5).explain(CUBE, G)
    weights = {"pairwise_robustness": [0.1, 1.0, 10.0]}
    return po.sweep(OBJECTIVE, weights, [noisy, 2.0 * G])


@pytest.fixture
def sound(tmp_path):
    swept().save(tmp_path / "sound")
    return tmp_path / "sound.npz"


def test_every_field_of_every_explanation_comes_back_exactly(tmp_path):
    curve = swept()
    curve.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve")
    assert (again.losses, again.failures, again.interrupted) == (
        curve.losses,
        (),
        False,
    )
    assert (len(again.optimized), len(again.baselines)) == (3, 2)
    for result, expected in zip(again.explanations, curve.explanations, strict=True):
        for name in FIELDS:
            assert getattr(result, name) == getattr(expected, name), name
        np.testing.assert_array_equal(result.attributions, expected.attributions)
        if expected.standard_errors is not None:
            np.testing.assert_array_equal(
                result.standard_errors, expected.standard_errors
            )
    assert again.baselines[0].standard_errors is not None
    pd.testing.assert_frame_equal(again.to_frame(), curve.to_frame(), check_exact=True)


def test_attributions_on_curves_are_computed_and_proved_for_it(tmp_path):
    curve = po.sweep(OBJECTIVE, {"pairwise_robustness": np.geomspace(0.1, 10.0, 9)})
    assert all(map(is_lazy, curve.optimized))
    curve.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve")
    assert [e.certificate.kind for e in again.optimized] == ["strong convexity"] * 9
    for best in again.optimized:
        weighed = OBJECTIVE.with_weights(best.weights)
        assert best.certificate == po.certify(weighed, best)


def test_names_that_explanations_share_are_stored_once(sound):
    header = header_of(members_of(sound))
    assert header["shared"] == [{"points": ROWS, "features": NAMES}]
    parts = [*header["optimized"], *header["baselines"]]
    assert [part["labels"] for part in parts] == [0] * 5
    again = po.TradeOffs.load(sound)
    assert again.optimized[0].labels is again.baselines[0].labels


def test_trade_offs_of_nothing_and_of_an_interrupted_sweep_come_back(tmp_path):
    for curve in (
        po.TradeOffs(optimized=(), baselines=(), losses=("sparsity",)),
        po.TradeOffs(
            optimized=swept().optimized[:1],
            baselines=(),
            losses=("gradient_matching",),
            failures=("no answer",),
            interrupted=True,
        ),
    ):
        curve.save(tmp_path / "curve")
        assert repr(po.TradeOffs.load(tmp_path / "curve")) == repr(curve)
        assert po.TradeOffs.load(tmp_path / "curve").failures == curve.failures


def test_a_multiplier_of_a_limit_of_zero_is_infinite_and_is_saved(tmp_path):
    robust = po.PairwiseRobustness(po.chain_graph(5))
    curve = po.sweep(po.GradientMatching(G), limits={robust: [0.0, 0.1]})
    curve.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve")
    assert again.optimized[0].multipliers == {"pairwise_robustness": np.inf}
    assert again.optimized[1].multipliers == curve.optimized[1].multipliers


def test_a_point_without_attributions_is_left_out_and_told(tmp_path, monkeypatch):
    curve = swept()
    _ = [curve.optimized[place].attributions for place in (0, 2)]
    monkeypatch.setattr(
        "propopt.results.explanation.LazyAttributions.proved", lambda *_: refused()
    )
    with pytest.warns(UnsolvedWarning, match="weight 2 of 3 were not found"):
        curve.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve")
    assert [e.weights["pairwise_robustness"] for e in again.optimized] == [0.1, 10.0]
    assert "no attributions were found" in again.failures[0]
    assert len(again.baselines) == 2


def refused():
    raise SolverFailure("no step was left")


def test_more_attributions_than_memory_holds_are_refused_before_any(
    tmp_path, monkeypatch
):
    curve = swept()
    monkeypatch.setattr(
        "propopt.base.resources.free_memory", lambda: 3 * 5 * 2 * 8 - 1.0
    )
    with pytest.raises(Refused, match="attributions of 3 explanations"):
        curve.save(tmp_path / "curve")
    assert all(map(is_lazy, curve.optimized))
    monkeypatch.setattr("propopt.base.resources.free_memory", lambda: 3 * 5 * 2 * 8.0)
    curve.save(tmp_path / "curve")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    bad = po.Explanation(attributions=G, method="mine", losses={"sparsity": np.nan})
    other = po.Explanation(attributions=G, method="mine")
    for explanation, reason in (
        (bad, "baselines.0.losses.sparsity: expected a finite"),
        (other, "baselines.0: losses: there is no spars"),
    ):
        curve = po.TradeOffs(
            optimized=(), baselines=(explanation,), losses=("sparsity",)
        )
        with pytest.raises(InvalidInput, match=f"cannot be saved: {reason}"):
            curve.save(tmp_path / "curve")
    assert list(tmp_path.iterdir()) == []


def changed(path, **header):
    told = header_of(members_of(path)) | header
    write_signed(path, with_header(members_of(path), told))


def part_changed(path, **items):
    first, *others = header_of(members_of(path))["optimized"]
    changed(path, optimized=[{**first, **items}, *others])


BROKEN = {
    "losses: expected each name once": lambda p: changed(
        p, losses=["gradient_matching"] * 2
    ),
    "losses: expected a list, each text": lambda p: changed(p, losses=[]),
    "failures.0: expected text": lambda p: changed(p, failures=[1]),
    "interrupted: expected true or false": lambda p: changed(p, interrupted=1),
    "optimized: expected a list": lambda p: changed(p, optimized=True),
    "baselines.0: expected the fields": lambda p: changed(p, baselines=[1]),
    "its header has no optimized.0.labels.features": lambda p: changed(
        p, shared=[{"points": None}]
    ),
    "shared: expected a place": lambda p: part_changed(p, labels=1),
    "shared: expected a pl": lambda p: part_changed(p, labels=False),
    "optimized.0.units: expected": lambda p: part_changed(p, units="metres"),
    "optimized.0: certificate: it is of the value": lambda p: part_changed(
        p, weights={"gradient_matching": 1.0, "pairwise_robustness": 0.2}
    ),
    "optimized.0: losses: there is no more": lambda p: changed(
        p, losses=["gradient_matching", "more"]
    ),
    "it has no optimized.0.attributions": lambda p: write_signed(
        p, {n: d for n, d in members_of(p).items() if "optimized.0.att" not in n}
    ),
    "it also has the array 'optimized.7.attributions'": lambda p: write_signed(
        p, {**members_of(p), "optimized.7.attributions.npy": npy(np.ones(2))}
    ),
    "baselines.0.standard_errors: expected numbers >= 0": lambda p: write_signed(
        p, {**members_of(p), "baselines.0.standard_errors.npy": npy(-np.ones((5, 2)))}
    ),
    "its header has also more": lambda p: changed(p, more=1),
}


@pytest.mark.parametrize("break_it", BROKEN.values(), ids=BROKEN)
def test_what_no_trade_offs_have_is_named(break_it, sound, request):
    break_it(sound)
    message = request.node.callspec.id
    with pytest.raises(InvalidInput, match=f"not saved trade-offs: {message}"):
        po.TradeOffs.load(sound)


def test_what_rows_add_up_to_is_read_from_files_of_version_3(tmp_path):
    """Their explanations stood in one list."""
    phi = np.array(G)
    curve = po.sweep(
        po.GradientMatching(phi) + OBJECTIVE.losses[1],
        {"pairwise_robustness": [0.1, 1.0]},
        {"whole": phi, "half": phi / 2},
        subject_to=[po.Completeness(phi.sum(axis=1))],
    )
    curve.save(tmp_path / "new")
    path = tmp_path / "new.npz"
    members = members_of(path)
    header = header_of(members)
    parts = [header.pop(kind) for kind in ("optimized", "baselines")]
    for kind, first in (("optimized", 0), ("baselines", len(parts[0]))):
        for name in [name for name in members if name.startswith(kind)]:
            place, _, own = name.removeprefix(f"{kind}.").partition(".")
            members[f"{first + int(place)}.{own}"] = members.pop(name)
    del header["digest"]
    header |= {
        "labels": header.pop("shared"),
        "explanations": parts[0] + parts[1],
        "optimized": len(parts[0]),
        "version": 3,
    }
    write(path, with_header(members, header))
    old = po.TradeOffs.load(path)
    assert old.bounds == curve.bounds == {"completeness": 0.0}
    assert old.distances().equals(curve.distances())


def test_a_file_of_another_kind_of_result_is_refused(sound, tmp_path):
    swept().baselines[0].save(tmp_path / "one")
    with pytest.raises(InvalidInput, match=r"one\.npz: not saved trade-offs: .*else"):
        po.TradeOffs.load(tmp_path / "one")
    with pytest.raises(InvalidInput, match=r"not a saved explanation: .*else"):
        po.Explanation.load(sound)


def test_a_later_version_is_refused_with_both_numbers(sound):
    changed(sound, version=5)
    with pytest.raises(InvalidInput, match="version 5; this propopt reads version 4"):
        po.TradeOffs.load(sound)


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_file_is_refused_in_one_sentence_or_sound(seed, sound, tmp_path):
    rng, path = np.random.default_rng(seed), tmp_path / "crafted.npz"
    outcomes = []
    for _ in range(50):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # zipfile: two of one name
            mutation = craft(rng, sound, path)
        outcomes.append(is_sound(path, mutation))
    assert not all(outcomes)


def is_sound(path, mutation):
    try:
        result = po.TradeOffs.load(path)
    except InvalidInput as error:
        message = str(error)
        assert message.startswith(f"{path}: "), (mutation, message)
        assert "\n" not in message, (mutation, message)
        return False
    assert len(result.to_frame()) == len(result.explanations)
    assert result._repr_html_().encode()
    return True


def test_the_card_shows_ends_baselines_and_what_is_missing():
    weights = {"pairwise_robustness": np.geomspace(1e-3, 1e3, 41)}
    curve = po.sweep(OBJECTIVE, weights, {"<b>": G}, solver=Spectral())
    card = curve._repr_html_()
    assert all(map(is_lazy, curve.optimized))
    assert card.count("<tr ") == 1 + 10 + 1
    assert "41 optimized, 1 others" in card
    assert ">0.001<" in card
    assert ">1000<" in card
    assert "&lt;b&gt;" in card
    assert "interrupted" not in card
    assert po.TradeOffs(optimized=(), baselines=(), losses=("a",))._repr_html_()

"""Trade-offs as a table and as one file: what the contract of results cannot know."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from crafted_archives import header_of, members_of
from sweeps import explanation

import propopt as po
from propopt.base.errors import InvalidInput, Refused, SolverFailure, UnsolvedWarning
from propopt.results.explanation import is_lazy
from propopt.solvers.curves import Spectral


NAMES, ROWS = ["age", "dose"], list("pqrst")
G = pd.DataFrame(
    np.random.default_rng(5).normal(size=(5, 2)), columns=NAMES, index=ROWS
)
ROBUST = po.PairwiseRobustness(po.chain_graph(5))
OBJECTIVE = po.GradientMatching(G) + ROBUST
CUBE = po.functions.Power(3)


def swept():
    noisy = po.explainers.SmoothGrad(scale=0.1, n_samples=5).explain(CUBE, G)
    weights = {"pairwise_robustness": [0.1, 1.0, 10.0]}
    return po.sweep(OBJECTIVE, weights, [noisy, 2.0 * G])


@pytest.fixture
def sound(tmp_path):
    swept().save(tmp_path / "sound")
    return tmp_path / "sound.npz"


def test_the_table_as_text(tmp_path):
    weights = {"loss0": 1.0, "loss1": 1 / 7}
    best = explanation(
        "optimized", losses=(0.1, 0.7), weights=weights, seconds=1e-5 / 3
    )
    lime = {"scale": 0.1, "n_samples": 100, "fit_intercept": True}
    smooth = {"scale": 0.1 + 0.2, "n_samples": 7, "distribution": "ball"}
    others = (
        explanation("gradient", losses=(4, 5), seconds=0.1),
        explanation("lime", losses=(1 / 3, 1e-300), parameters=lime),
        explanation("smoothgrad", losses=(np.pi * 1e17, 5e-324), parameters=smooth),
    )
    names = ("loss0", "loss1")
    curve = po.TradeOffs(optimized=(best,), baselines=others, losses=names)
    parameters = [f"parameter.{name}" for name in {**lime, **smooth}]
    of_weights, of_losses = ([f"{x}.{n}" for n in names] for x in ("weight", "loss"))
    assert list(curve.to_frame())[:-6] == [
        "method",
        *of_weights,
        *parameters,
        *of_losses,
    ]
    last = ["objective", "gap", "target_error", "on_front", "seconds", "target"]
    assert list(curve.to_frame())[-6:] == last
    curve.to_csv(tmp_path / "curve.csv")
    table = pd.read_csv(tmp_path / "curve.csv", dtype=str, keep_default_na=False)
    optimum, gradient, lime, smooth = table.to_numpy().tolist()
    assert optimum[1:3] == ["1.0", str(1 / 7)]
    assert float(optimum[9]) == 0.1 + 0.7 / 7
    assert optimum[12:14] == ["True", str(1e-5 / 3)]
    assert gradient[1:7] == 6 * [""]
    assert gradient[9:11] == ["", ""]
    assert lime[3:8] == ["0.1", "100", "True", "", str(1 / 3)]
    assert smooth[3:7] == [str(0.1 + 0.2), "7", "", "ball"]
    assert float(smooth[8]) == 5e-324
    # losses of bounds are no columns
    curve = po.sweep(po.GradientMatching(G), {}, subject_to=[po.Sparsity() <= 3.0])
    assert curve.optimized[0].losses["sparsity"] == pytest.approx(3.0, abs=1e-4)
    assert "loss.sparsity" not in curve.to_frame()


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


def test_trade_offs_of_nothing_interrupted_or_at_a_limit_of_zero_come_back(tmp_path):
    nothing = po.TradeOffs(optimized=(), baselines=(), losses=("gradient_matching",))
    few = {"optimized": swept().optimized[:1], "failures": ("no answer",)}
    for curve in (
        nothing,
        dataclasses.replace(nothing, **few, interrupted=True),
        po.sweep(po.GradientMatching(G), limits={ROBUST: [0.0, 0.1]}),
    ):
        curve.save(tmp_path / "curve")
        again = po.TradeOffs.load(tmp_path / "curve")
        assert repr(again) == repr(curve)
        assert again.failures == curve.failures
        for one, other in zip(again.optimized, curve.optimized, strict=True):
            assert one.multipliers == other.multipliers
    assert again.optimized[0].multipliers == {"pairwise_robustness": np.inf}


def test_a_point_without_attributions_is_left_out_and_told(tmp_path, monkeypatch):
    curve = swept()
    _ = [curve.optimized[place].attributions for place in (0, 2)]

    def refused(*_):
        raise SolverFailure("no step was left")

    monkeypatch.setattr("propopt.results.explanation.LazyAttributions.proved", refused)
    with pytest.warns(UnsolvedWarning, match="weight 2 of 3 were not found"):
        curve.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve")
    assert [e.weights["pairwise_robustness"] for e in again.optimized] == [0.1, 10.0]
    assert "no attributions were found" in again.failures[0]
    assert len(again.baselines) == 2


def test_more_attributions_than_memory_holds_are_refused_before_any(
    tmp_path, monkeypatch
):
    curve, free = swept(), "propopt.base.resources.free_memory"
    monkeypatch.setattr(free, lambda: 3 * 5 * 2 * 8 - 1.0)
    with pytest.raises(Refused, match="attributions of 3 explanations"):
        curve.save(tmp_path / "curve")
    assert all(map(is_lazy, curve.optimized))
    monkeypatch.setattr(free, lambda: 3 * 5 * 2 * 8.0)
    curve.save(tmp_path / "curve")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    bad = po.Explanation(attributions=G, method="mine", losses={"sparsity": np.nan})
    other = po.Explanation(attributions=G, method="mine")
    for told, reason in (
        (bad, "baselines.0.losses.sparsity: expected a finite"),
        (other, "baselines.0: losses: there is no spars"),
    ):
        curve = po.TradeOffs(optimized=(), baselines=(told,), losses=("sparsity",))
        with pytest.raises(InvalidInput, match=f"cannot be saved: {reason}"):
            curve.save(tmp_path / "curve")
    assert list(tmp_path.iterdir()) == []


def test_the_card_shows_ends_baselines_and_what_is_missing():
    weights = {"pairwise_robustness": np.geomspace(1e-3, 1e3, 41)}
    curve = po.sweep(OBJECTIVE, weights, {"<b>": G}, solver=Spectral())
    card = curve._repr_html_()
    assert all(map(is_lazy, curve.optimized))
    assert card.count("<tr ") == 1 + 10 + 1
    for shown in ("41 optimized, 1 others", ">0.001<", ">1000<", "&lt;b&gt;"):
        assert shown in card
    assert "interrupted" not in card
    assert po.TradeOffs(optimized=(), baselines=(), losses=("a",))._repr_html_()

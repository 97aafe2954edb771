"""Levels of comparisons at their edges: one pair, limits, no base, files."""

import numpy as np
import pytest

import propopt as po
from propopt.results.comparison import NullLevel


def level(n_bases=1, shift=0.0, **fields):
    """Refits of two columns whose sizes are 1 and 2 give or take a bit."""
    noise = 0.1 * np.random.default_rng(0).normal(size=(20, 3 + n_bases))
    sizes = np.array([1.0, 2.0, 3.0, 5.0])[: 3 + n_bases] + noise
    given = {"kind": "bootstrap_refits", "least": 0.01, "tested": np.array([0.1, 0.2])}
    given |= {"distances": np.abs(noise[:, :2]), "before": sizes}
    return NullLevel(**{**given, "after": sizes[::-1] + shift, **fields})


def compared(**fields):
    settings = {"kind": "versions", "names": ("old", "new"), "sources": ("a", "b")}
    sides = {"before": np.zeros((1, 2)), "after": np.array([[1.25, 2.0]])}
    return po.results.Comparison(**{**settings, **sides, **fields})


def facts_of(result):
    return {fact.label: fact.text for fact in result.document().blocks[1]}


def test_a_column_at_its_limit_is_not_flagged():
    at = level().distance_limits
    for factor, flags in ((1.0, [False, False]), (1.001, [True, True])):
        result = compared(level=level(tested=factor * at))
        assert result.distance_flagged.tolist() == flags
    frame = compared(level=level()).to_frame().set_index("feature")
    np.testing.assert_allclose(frame.loc[["x0", "x1"], "times_level"], [0.1, 0.2] / at)


@pytest.mark.parametrize("n_bases", [0, 1])
def test_a_base_is_tested_if_each_model_has_one(n_bases):
    shift = np.array([0.0, 0.0, 0.0, -9.0])[: 3 + n_bases]
    result = compared(level=level(n_bases, shift), base_values=(0.0, -9.0))
    assert result.base_flagged is bool(n_bases)
    assert not result.total_flagged
    assert not result.size_flagged.any()
    assert ("changed" in facts_of(result)["base"]) is bool(n_bases)
    assert ("chance ±" in facts_of(result)["base"]) is bool(n_bases)


def test_the_card_has_the_level_and_its_rate():
    facts = facts_of(compared(level=level(shift=[0.0, 5.0, 5.0, 0.0])))
    assert facts["level"] == "20 and 20 refits (estimated)"
    assert facts["false alarms"] == "5% (assumed, at most)"
    assert facts["total size"].endswith("changed)")
    assert facts_of(compared()) == {}


def test_verdicts_name_what_is_flagged():
    flagged = level(shift=[0.0, 5.0, 0.0, 0.0], tested=np.array([3.0, 0.0]))
    result = compared(level=flagged)
    table = result.document().blocks[0].frame
    assert table["verdict"].to_dict() == {"x1": "size changed", "x0": "changed"}
    ratios = np.maximum(result.times_level, result.size_ratios)
    assert table["× level"].to_dict() == {
        name: f"{ratio:.2f}" for name, ratio in zip(["x0", "x1"], ratios, strict=True)
    }


def test_a_loaded_comparison_has_the_same_verdicts(tmp_path):
    result = compared(level=level(shift=[1.0, 0.0, 0.0, 1.0]), base_values=(0.0, 1.0))
    result.save(tmp_path / "found.npz")
    loaded = po.results.Comparison.load(tmp_path / "found.npz")
    assert loaded.to_frame().equals(result.to_frame())
    np.testing.assert_array_equal(loaded.level.size_limits, result.level.size_limits)
    assert (loaded.base_flagged, loaded.total_flagged) == (True, False)

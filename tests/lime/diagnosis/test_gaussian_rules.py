"""Rules of normal samples: where each fires, with its number, and where it does not."""

from __future__ import annotations

import numpy as np
import pytest
from lime_cases import grid, linear

import propopt as po
from papers.lime import gaussian_theory
from propopt.lime import GaussianLaw, LimeDiagnosis, limits


LINEAR = linear([10.0, -10.0, 0.0], grid(3, -2.0, 2.0))
LINEAR.coef_[2] = 0.0  # and no dust of rounding


def diagnosed(row: list[float], width: float) -> LimeDiagnosis:
    law = GaussianLaw.of(np.zeros(3), 1.0, width)
    return limits(LINEAR, np.array([row]), law).diagnose()


def numbers(diagnosis: LimeDiagnosis, rule: str) -> dict[int | None, float]:
    return {item.column: item.number for item in diagnosis.of(rule)}


def test_the_width_of_figure_7_switches_a_column_off():
    # ν_crit = 0.5301 for ξ = 0.432 and quartiles of N(0, 1)
    diagnosis = diagnosed([1.0, 0.432, 0.1], 0.53)
    assert set(numbers(diagnosis, "switched off")) == {1}
    assert numbers(diagnosis, "switched off")[1] < 1e-3
    (item,) = diagnosis.of("switched off")
    assert "at the kernel width 0.5301 it changes its sign" in item.sentence


def test_another_width_does_not():
    diagnosis = diagnosed([1.0, 0.432, 0.1], 2.0)
    assert diagnosis.of("switched off") == ()


def test_bins_below_the_mean_have_the_opposite_sign():
    diagnosis = diagnosed([1.0, -1.5, 0.1], 2.0)
    gain = gaussian_theory.gains(
        GaussianLaw.of(np.zeros(3), 1.0, 2.0), [[1.0, -1.5, 0.1]]
    ).gain
    assert numbers(diagnosis, "sign opposite to gradient") == {
        1: pytest.approx(gain[0, 1], rel=1e-12)
    }
    assert gain[0, 1] == pytest.approx(-1.46146931, abs=1e-8)


def test_a_narrow_kernel_has_no_samples_outside_the_bin():
    diagnosis = diagnosed([0.3, 0.3, 0.3], 0.08)
    outside = numbers(diagnosis, "no samples outside the bin")
    assert set(outside) == {0, 1}  # the third column is not used
    law = GaussianLaw.of(np.zeros(3), 1.0, 0.08)
    gains = gaussian_theory.gains(law, [[0.3, 0.3, 0.3]])
    expected = 5000 * np.exp(gains.log_weight[0]) * gains.complement[0, 0]
    assert outside[0] == pytest.approx(expected, rel=1e-9)
    assert "no samples outside the bin" not in diagnosed([0.3] * 3, 2.0).rules


def test_a_row_far_from_the_mean_is_told():
    assert numbers(diagnosed([3.5, 0.1, 9.0], 2.0), "far from the mean") == {
        0: pytest.approx(3.5, rel=1e-9)
    }
    assert "far from the mean" not in diagnosed([2.9, 0.1, 0.0], 2.0).rules


def test_an_edge_belongs_to_the_bin_above():
    diagnosis = diagnosed([1e-3, 1.5, 0.1], 1.0)
    assert set(numbers(diagnosis, "edge proximity")) == {0}
    width = GaussianLaw.of(np.zeros(3), 1.0, 1.0).columns[0].edges[2]
    assert numbers(diagnosis, "edge proximity")[0] == pytest.approx(1e-3 / width)


def test_tabular_laws_have_none_of_them():
    X = grid(3, -2.0, 2.0)
    quiet = limits(LINEAR, X[:1], data=X).diagnose().quiet
    words = {item.rule: item.sentence for item in quiet}
    assert words["switched off"] == "not looked for: samples are not normal"


def test_glime_has_weights_of_one():
    law = po.lime.GlimeLaw(GaussianLaw.of(np.zeros(3), 1.0, 0.53))
    diagnosis = limits(LINEAR, np.array([[1.0, 0.432, 0.1]]), law).diagnose()
    assert 1 in numbers(diagnosis, "switched off")
    assert "weight collapse: samples" not in diagnosis.rules
    words = {item.rule: item.sentence for item in diagnosis.quiet}
    assert words["non-local weights"] == "not looked for: samples have no weights"

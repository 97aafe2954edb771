"""Figures of the papers on LIME: verdicts on record; runs and their equations."""

from dataclasses import replace

import numpy as np
import pytest
from figures_on_record import drawn_as_on_record
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from papers import PAPERS
from papers.lime import functions
from papers.lime.charts import Bars
from papers.lime.runs import (
    RunSettings,
    expected_at,
    fit_bits,
    run_lime,
    with_intercept,
)
from papers.tabular_lime.setups import uniform_data, uniform_law
from papers.text_lime import (
    corpus,
    package,
)
from papers.text_lime.coloured import ColouredText
from propopt.lime import GaussianLaw
from propopt.lime.exact_limits import ExactLimits


def permuted(values: np.ndarray) -> np.ndarray:
    """Coefficients of one column are those of the next; the intercept stays."""
    return np.r_[values[:1], np.roll(values[1:], 1)]


QUICK = {
    "tabular-lime": ("fig2", "fig11"),
    "linear-lime": ("fig2", "fig3", "fig5", "fig6", "fig7"),
    "text-lime": ("fig3", "fig4", "fig14", "rule", "bounds", "errors"),
}
EVERY = [
    pytest.param(paper, name, marks=[] if name in quick else pytest.mark.slow)
    for paper, quick in QUICK.items()
    for name in PAPERS[paper].figures
]


@pytest.mark.parametrize(("paper", "name"), EVERY)
def test_a_figure_has_the_verdicts_on_record_and_is_drawn(paper, name):
    """Each |z| ≤ 5 is a false alarm once in 400,000 (100 runs), 12,000 (20 runs)."""
    results = drawn_as_on_record(PAPERS[paper], name)
    assert [warning for one in results for warning in one.warnings] == []


# ---- texts, and the package


@pytest.mark.parametrize("model", ["small tree", "linear model"])
def test_runs_are_those_of_the_package(model, monkeypatch):
    """Largest |t| of 30 means of 8 runs of 1000: below 10, a false alarm in 1500."""
    pytest.importorskip("lime")
    settings = RunSettings(n_samples=1000, n_runs=8)
    monkeypatch.setattr(package, "_SETTINGS", settings)
    runs = package.package_word_runs(model)
    assert runs.labels == corpus.review_of(29).words
    assert np.abs(runs.scores).max() < 10
    assert np.abs(permuted(runs.mean) - runs.expected).max() > 0.1


# ---- runs of LIME and what is said of them: true ones pass, wrong ones fail


def test_regressions_are_weighted_ridge_with_a_free_intercept():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (2, 50, 3)).astype(float)
    weights, values = rng.random((2, 50)), rng.normal(size=(2, 50))
    for one, result in enumerate(fit_bits(bits, weights, values, ridge=0.7)):
        Z = np.c_[np.ones(50), bits[one]]
        left = Z.T @ (weights[one][:, None] * Z) + np.diag([0.0, 0.7, 0.7, 0.7])
        right = Z.T @ (weights[one] * values[one])
        np.testing.assert_allclose(result, np.linalg.solve(left, right), rtol=1e-12)


@pytest.mark.parametrize("first_row", [True, False])
def test_the_expected_output_solves_the_mean_equations(first_row):
    law = uniform_law(uniform_data(np.random.RandomState(0), 3))
    row, f = np.array([1.0, -2.0, 6.0]), functions.linear_function(np.arange(3.0))
    limits = ExactLimits(f, law).of(row[None, :])
    settings = RunSettings(n_samples=50, ridge=3.0, first_row=first_row)
    a = np.r_[1.0, limits.alpha[0]]
    mean = np.outer(a, a)
    np.fill_diagonal(mean, a)
    mean *= (50 - first_row) * np.exp(limits.log_weight[0])
    left = mean + first_row + np.diag([0.0, 3.0, 3.0, 3.0])
    right = mean @ with_intercept(limits) + first_row * f.value(row[None, :])
    result = expected_at(limits, float(f.value(row[None, :])[0]), settings)
    wanted = np.linalg.solve(left, right)
    # what solves a system is known to ε cond(A) of its largest entry, zeros too
    rounding = np.finfo(float).eps * np.linalg.cond(left) * np.abs(wanted).max()
    np.testing.assert_allclose(result, wanted, rtol=1e-10, atol=rounding)
    assert rounding < 1e-12


def test_runs_are_about_what_is_expected_and_the_same_for_one_seed():
    """Largest |z| of 3 coefficients of 200 runs: below 5, a false alarm in 5e5."""
    law = GaussianLaw.of(np.zeros(2), 1.0, 1.0)
    f, row = functions.gaussian_sum(np.eye(2), np.ones(2), 1.0), np.array([0.3, -1.0])
    settings = RunSettings(n_samples=2000, n_runs=200, ridge=0.0, first_row=False)
    runs = run_lime(f.value, f, law, row, settings)
    assert runs.estimates.shape == (200, 3)
    assert np.abs(runs.scores).max() < 5
    assert runs.to_frame()["coefficient"].tolist() == ["intercept", "x0", "x1"]
    again = run_lime(f.value, f, law, row, settings)
    other = run_lime(f.value, f, law, row, replace(settings, seed=1))
    np.testing.assert_array_equal(runs.estimates, again.estimates)
    assert (runs.estimates != other.estimates).all()


@pytest.mark.parametrize(("sign", "colour"), [(1.0, "#dd8452"), (-1.0, "#1f4e79")])
def test_what_is_for_is_orange_and_what_is_against_is_blue(sign, colour):
    """As in figure 1 of the paper on texts, in its text and its bars."""
    document = corpus.review_of(29)
    axes = Figure().subplots()
    weights = sign * (np.arange(29) == 3)
    ColouredText(title="text", document=document, weights=weights).draw(axes)
    assert {to_hex(mark.get_facecolor()[0]) for mark in axes.collections} == {colour}
    law = GaussianLaw.of(np.zeros(1), 1.0, 1.0)
    f = functions.gaussian_sum(np.eye(1), np.ones(1), 1.0)
    settings = RunSettings(n_samples=50, n_runs=2, ridge=1.0, first_row=False)
    runs = run_lime(f.value, f, law, np.zeros(1), settings)
    Bars(title="bars", values=np.array([sign]), runs=runs).draw(axes)
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [colour]


def test_the_width_of_the_package_is_that_of_the_statement_on_it():
    tabular = pytest.importorskip("lime.lime_tabular")
    X = np.random.default_rng(0).normal(size=(50, 3))
    kernel = tabular.LimeTabularExplainer(X, mode="regression").base.kernel_fn
    width = np.sqrt(-0.5 / np.log(kernel(np.ones(1))[0]))
    assert width == pytest.approx(0.75 * np.sqrt(3))
    assert uniform_law(X).kernel_width == pytest.approx(width)

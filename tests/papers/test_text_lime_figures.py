"""Figures of the paper on LIME for texts: what it states holds, and can fail."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from figures_on_record import drawn_as_on_record, measured, moved, scaled

from papers import PAPERS
from papers.lime.runs import RunSettings
from papers.text_lime import (
    bandwidth,
    bounds,
    constants,
    corpus,
    forests,
    linear,
    misprints,
    package,
    rule,
    trees,
    weights,
)


PAPER = PAPERS["text-lime"]
QUICK = ("fig3", "fig4", "fig7", "fig9", "fig13", "fig14", "rule", "bounds", "errors")
EVERY = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
    for name in PAPER.figures
]


@pytest.mark.parametrize("name", EVERY)
def test_a_figure_has_the_verdicts_on_record_and_is_drawn(name):
    """Each |z| ≤ 5 is a false alarm once in 400,000 (100 runs), 12,000 (20 runs)."""
    results = drawn_as_on_record(PAPER, name)
    assert [warning for one in results for warning in one.warnings] == []


# each statement fails where what was measured is slightly wrong


def permuted(beta):
    """Coefficients of one word are those of the next."""
    return np.r_[beta[:1], np.roll(beta[1:], 1)]


SMALL = partial(trees.word_tree_runs, 29, 0.25, 5000)
LARGE = partial(trees.word_tree_runs, 29, 0.25, 5000, name="large")
FEW = partial(trees.word_tree_runs, 29, 0.25, 50)
LINEAR = partial(linear.linear_word_runs, 29, 0.25, 1000)
FEW_LINEAR = partial(linear.linear_word_runs, 29, 0.25, 50)
FOREST = partial(forests.forest_word_runs, (10, 15), 50, 100)
ONE = rule.one_of_many
PRODUCTS = misprints.products_of_words


def quadratic(values):
    """The same as if it grew with the square of the number of words."""
    return values * np.array([10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]) ** 2


small_known = partial(
    trees.values_are_known, known=(0.13057, 0.55758, 0.20079, 0.20079, 0.00070)
)
CASES = [
    (small_known, SMALL, scaled("limit")),
    (small_known, SMALL, moved("limit", permuted)),
    (trees.ignored_are_small, SMALL, moved("limit", permuted)),
    (trees.root_weighs_most, SMALL, moved("limit", permuted)),
    (trees.word_of_two_nodes_adds_up, LARGE, scaled("limit")),
    (trees.few_samples_shrink, FEW, scaled("estimates", 1.3)),
    (weights.lies_between_bounds, weights.psi_curves, lambda psi: 1.001 * psi),
    (weights.lies_between_bounds, weights.psi_curves, lambda psi: psi[::-1]),
    (weights.falls_to_its_least, weights.psi_curves, lambda psi: 0.999 * psi),
    (weights.falls_to_its_least, weights.psi_curves, lambda psi: psi[:, ::-1]),
    (constants.inverse_is_inverse, constants.constant_curves, scaled("ratios")),
    (constants.moments_tend, constants.constant_curves, scaled("alphas", 1.01)),
    (constants.moments_are_bounded, constants.constant_curves, scaled("alphas")),
    (constants.c_tends, constants.constant_curves, scaled("c", 1.01)),
    (constants.c_is_bounded, constants.constant_curves, scaled("c", 1e-3)),
    (constants.entries_tend, constants.constant_curves, scaled("ratios", 1.01)),
    (constants.c_is_linear_in_words, constants.c_by_words, lambda c: c * c[0]),
    (constants.c_slope_is_known, constants.c_by_words, lambda c: 1.001 * c),
    (bandwidth.root_is_known, bandwidth.came_curves, scaled("root")),
    (bandwidth.came_changes_sign, bandwidth.came_curves, moved("limits", np.abs)),
    (bandwidth.few_runs_show_it, bandwidth.came_curves, moved("few", np.abs)),
    (
        bandwidth.means_are_expected_at_widths,
        bandwidth.came_curves,
        moved("scores", lambda z: z + 5.0),
    ),
    (
        bandwidth.tends_to_leaving_one_out,
        bandwidth.tree_by_width,
        lambda result: 1.001 * result,
    ),
    (bounds.norms_are_known, bounds.inverse_norms, lambda norms: 1.01 * norms),
    (
        bounds.norm_is_bounded,
        bounds.inverse_norms,
        lambda norms: norms * [[1], [9], [1e3]],
    ),
    (bounds.few_are_far_off, bounds.unpenalised_runs, scaled("limit", 1.2)),
    (
        bounds.gamma_concentrates_as_mended,
        bounds.deviations_of_gamma,
        lambda result: 100.0 * result,
    ),
    (misprints.products_of_words_are_known, PRODUCTS, scaled("limits")),
    (misprints.one_word_is_itself, PRODUCTS, scaled("limits")),
    (misprints.one_word_is_itself, PRODUCTS, moved("limits", np.fliplr)),
    (misprints.gap_is_known, PRODUCTS, scaled("limits")),
    (misprints.others_fall_with_words, PRODUCTS, moved("outside", quadratic)),
    (misprints.others_of_wide_kernels_are_known, PRODUCTS, scaled("outside")),
    (misprints.whole_text_is_blind, PRODUCTS, moved("limits", lambda x: x + 1e-300)),
    (misprints.empty_share_is_known, misprints.words_kept, np.zeros_like),
    (linear.proportional_to_terms, LINEAR, moved("limit", permuted)),
    (linear.unknown_words_are_small, LINEAR, moved("limit", permuted)),
    (linear.few_samples_shrink_slopes, FEW_LINEAR, scaled("estimates", 1.3)),
    (rule.limits_of_one_are_known, ONE, scaled("limits")),
    (rule.limits_of_one_are_known, ONE, moved("limits", np.fliplr)),
    (rule.factors_are_known, ONE, scaled("factors")),
    (rule.own_tends_to_factor, ONE, scaled("limits", 1.01)),
    (rule.shares_are_known, ONE, scaled("shares", 1.003)),
    (rule.own_by_shares, ONE, scaled("shares", 1.02)),
    (rule.intercept_is_known, ONE, scaled("limits", 1.03)),
    (rule.all_alike_are_known, rule.all_alike, lambda result: 1.001 * result),
    (forests.limits_of_forests_add_up, FOREST, scaled("limit")),
    (forests.runs_of_forests_add_up, FOREST, scaled("estimates")),
]


@pytest.mark.parametrize(("statement", "make", "change"), CASES)
def test_a_statement_fails_where_something_is_slightly_wrong(statement, make, change):
    assert statement(measured(make)).holds
    assert not statement(change(measured(make))).holds


def constant_is_word(result):
    """The limits of nothing are those of one word."""
    return dataclasses.replace(result, limits=result.limits[[1, 1, 2, 3, 4]])


def to_rule(runs):
    """Runs and limits as the rule has them."""
    shift = runs.printed - runs.mean
    return dataclasses.replace(
        runs, limit=runs.printed, estimates=runs.estimates + shift
    )


def own_of(value):
    """The same with another own coefficient, and intercept."""
    return moved("limits", lambda limits: limits * 0.0 + value)


REFUTED = [
    (linear.rule_is_in_the_boxes, LINEAR, to_rule),
    (linear.slope_is_rule, LINEAR, to_rule),
    (rule.own_is_rule, ONE, own_of(1.36)),
    (rule.own_is_rule_at_default, ONE, own_of(1.36)),
    (
        rule.shares_by_the_rule,
        ONE,
        moved("shares", lambda _: np.array([1.2247, 1.1547])),
    ),
    (rule.intercept_as_printed, ONE, own_of(4.269)),
    (rule.leaks_can_be_dropped, rule.all_alike, lambda result: 2.0 * result),
    (misprints.nothing_is_one_word, PRODUCTS, constant_is_word),
    (misprints.norm_is_one, misprints.words_kept, lambda kept: kept + 1.0),
    (
        bounds.gamma_concentrates_as_printed,
        bounds.deviations_of_gamma,
        lambda result: np.r_[np.zeros(299), 1e-3 * result[:1]],
    ),
]


@pytest.mark.parametrize(("claim", "make", "change"), REFUTED)
def test_what_is_not_confirmed_would_be_if_it_were_so(claim, make, change):
    assert str(claim(measured(make)).verdict) == "not confirmed"
    assert claim(change(measured(make))).holds


REPLACED = [
    (rule.second_order_as_printed, ONE, rule, "second_order", 0.0),
    (weights.wide_kernels_weigh_nothing, None, weights.formulas, "psi", np.zeros(1)),
    (misprints.gap_as_printed, PRODUCTS, misprints.formulas, "printed_gap", 0.6432072),
    (misprints.constant_as_printed, None, misprints, "limit_of", -np.ones(1)),
]


@pytest.mark.parametrize(("claim", "make", "home", "name", "other"), REPLACED)
def test_what_is_not_confirmed_would_be_with_another_formula(
    claim, make, home, name, other, monkeypatch
):
    one = None if make is None else measured(make)
    assert str(claim(one).verdict) == "not confirmed"
    monkeypatch.setattr(home, name, lambda *_: other)
    assert claim(one).value < 1e-6


# statements on what they compute themselves


def off(function, factor=1.001):
    """What makes a thousandth more."""
    return lambda *arguments: factor * function(*arguments)


COMPUTED = [
    (weights.law_has_psi, weights.TextLaw, "log_weights", 1.001),
    (constants.numbers_are_known, constants.formulas, "alphas", 1.001),
    (bandwidth.products_are_known, bandwidth.Conjunctions, "kept", 1.001),
    (bandwidth.tree_is_known, bandwidth.Conjunctions, "kept", 1.01),
    (bounds.samples_are_known, bounds, "theorem_samples", 2),
    (partial(linear.function_is_the_model, d=29), linear, "slopes_of_words", 1.001),
]


@pytest.mark.parametrize(("statement", "home", "name", "factor"), COMPUTED)
def test_a_statement_fails_where_what_it_computes_is_slightly_wrong(
    statement, home, name, factor, monkeypatch
):
    assert statement(None).holds
    monkeypatch.setattr(home, name, off(getattr(home, name), factor))
    assert not statement(None).holds


def test_a_forest_that_is_read_wrongly_is_not_the_forest(monkeypatch):
    read = partial(forests.forest_is_read, seed=10, n_trees=50)
    assert read(None).holds
    other = forests._forest(15, 50)  # noqa: SLF001 - another forest in its place
    monkeypatch.setattr(forests, "_forest", lambda *_: other)
    assert not read(None).holds


# texts


def test_reviews_have_the_words_that_figures_need():
    for n_words in (29, 35, 52):
        document = corpus.review_of(n_words)
        assert document.n_words == n_words
        assert {"food", "about", "Everything", "bad", "character"} <= {*document.words}


def test_the_corpus_follows_zipf_and_its_seed():
    """Of 16,000 words the first come within five standard errors of their shares."""
    made = corpus.generated_corpus()
    assert made.texts == corpus.generated_corpus.__wrapped__().texts
    assert made.texts != corpus.generated_corpus(seed=1).texts
    lengths = [len(text.split()) for text in made.texts]
    assert (min(lengths), max(lengths)) == (20, 60)
    words, shares = corpus.zipf_words()
    assert shares[0] / shares[9] == pytest.approx(10.0)
    drawn = " ".join(made.texts).replace(".", "").split()
    for word, share in zip(words[:10], shares[:10], strict=True):
        error = np.sqrt(share / len(drawn))
        # moods take some of the total from words that have none
        assert abs(drawn.count(word) / len(drawn) - share) < 5 * error + 0.1 * share


# the package


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

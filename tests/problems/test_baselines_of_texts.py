"""Baselines on documents in problem files: what is made of settings, and refused."""

from __future__ import annotations

import numpy as np
import pytest
from problem_texts import complaint

import propopt as po
from propopt.explaining.explainers import (
    ExactLime,
    ExactShap,
    Gradient,
    Lime,
    LimePackage,
    Shap,
    TreeShap,
)
from propopt.lime import TextLaw


NOTES = """\
text,label
Good food at a good price,yes
Good food at a good price here,yes
bad food at a bad price,no
no good food here,no
a good price,yes
the worst food and price,no
"""
FILE = """\
data: {csv: notes.csv, text: text, target: label}
model: {kind: logistic, regularization: 1, output: log_odds, target_class: 'yes'}
objective: {gradient_matching: 1, shared_robustness: {graph: {kind: complete}}}
sweep: {shared_robustness: [0.1, 1]}
"""


@pytest.fixture
def problem(write):
    def made(baselines):
        write(NOTES, "notes.csv")
        path = write(f"{FILE}baselines: [{baselines}]\n")
        return po.problems.read_problem(path).build()

    return made


MADE = {
    "{method: gradient}": Gradient(),
    "{method: exact_lime}": ExactLime(law=TextLaw()),
    "{method: exact_lime, bandwidth: 0.5}": ExactLime(law=TextLaw(0.5)),
    "{method: lime, n_samples: 300}": Lime(law=TextLaw(), n_samples=300),
    "{method: lime, bandwidth: 2, ridge: 1, first_row: true, fit_intercept: false}": (
        Lime(law=TextLaw(2.0), ridge=1.0, first_row=True, fit_intercept=False)
    ),
    "{method: lime_package, bandwidth: 0.5, n_samples: 50}": LimePackage(
        kernel_width=50.0, n_samples=50
    ),
    "{method: shap, algorithm: permutation, n_permutations: 3}": Shap(
        algorithm="permutation", n_permutations=3
    ),
    "{method: tree_shap}": TreeShap(),
    "{method: exact_shap}": ExactShap(),
}


@pytest.mark.parametrize("said", MADE)
def test_a_baseline_is_that_of_the_library_by_the_law_of_texts(problem, said):
    package = {"shap": "shap", "lime_package": "lime"}.get(MADE[said].method)
    if package is not None:
        pytest.importorskip(package)
    file = problem(said)
    (result,) = file.baselines()
    expected = MADE[said].explain(file.function, file.points, rng=0, progress=False)
    np.testing.assert_allclose(result.attributions, expected.attributions, atol=1e-12)
    assert result.parameters == expected.parameters
    assert result.units == "output"
    assert not np.asarray(result.attributions)[file.subject.table == 0.0].any()


@pytest.mark.parametrize(
    ("widths", "listed"),
    [
        ("[0.5, 0.1]", [0.5, 0.1]),
        ("{low: 0.1, high: 10, points: 3}", [0.1, 1.0, 10.0]),
    ],
)
@pytest.mark.parametrize("method", ["exact_lime", "lime", "lime_package"])
def test_a_family_has_each_bandwidth(problem, method, widths, listed):
    methods = problem(f"{{method: {method}, bandwidth: {widths}}}").methods
    result = [
        one.kernel_width / 100.0 if method == "lime_package" else one.law.bandwidth
        for one in methods
    ]
    assert result == pytest.approx(listed)


def test_of_a_family_the_nearest_to_the_front_is_told(problem):
    file = problem("{method: exact_lime, bandwidth: [2, 0.01, 0.5]}")
    curve = file.sweep(file.baselines(), progress=False)
    told = curve.distances()
    assert told["parameter.bandwidth"].tolist() == [2.0, 0.01, 0.5]
    assert (told["excess"] > 0.0).all()
    assert "not_compared" not in told
    nearest = told["parameter.bandwidth"][told["excess"].idxmin()]
    assert curve.nearest("exact_lime").parameters["bandwidth"] == nearest == 0.01
    assert told["loss.gradient_matching"].idxmin() == 1  # it is nearly leaving one out
    assert (curve.units, curve.knee().units) == ("output", "output")


def test_a_sweep_of_documents_tells_what_is_kept(problem):
    file = problem("{method: gradient}")
    frame = file.sweep(file.baselines(), progress=False).to_frame()
    assert frame["kept"].between(0.0, 1.0).all()
    assert frame["kept"].iloc[-1] == 1.0
    assert frame["kept"].iloc[1] < frame["kept"].iloc[0] < 1.0


WIDTH = "of documents give bandwidth, a hundredth of it: the package's 25 is 0.25"
EMPTY = "of documents it is the text without any word; leave it out"
NO_EFFECT = "has no effect with data.text"


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        ("lime, scale: [1]", f"scale: {NO_EFFECT}"),
        ("lime, distribution: ball", f"distribution: {NO_EFFECT}"),
        ("lime, relative: false", f"relative: {NO_EFFECT}"),
        ("lime, kernel_width: 2", f"kernel_width: {WIDTH}"),
        ("lime_package, kernel_width: 25", f"kernel_width: {WIDTH}"),
        ("lime_package, discretize: false", f"discretize: {NO_EFFECT}"),
        ("lime_package, sample_around: true", f"sample_around: {NO_EFFECT}"),
        ("lime_package, units: gradient", f"units: {NO_EFFECT}"),
        ("exact_lime, kernel_width: [2, 3]", f"kernel_width: {WIDTH}"),
        ("exact_lime, n_bins: 3", f"n_bins: {NO_EFFECT}"),
        ("exact_lime, weights: uniform", f"weights: {NO_EFFECT}"),
        ("exact_lime, law: tabular", f"law: {NO_EFFECT}"),
        ("exact_lime, units: [output]", f"units: {NO_EFFECT}"),
        ("shap, background: mean", f"background: {EMPTY}"),
        ("shap, units: [output]", f"units: {NO_EFFECT}"),
        ("tree_shap, background: 100", f"background: {EMPTY}"),
        ("exact_shap, background: 100", f"background: {EMPTY}"),
        (
            "smoothgrad, scale: [1]",
            "method: words get no noise; take gradient, which is the effect of each, "
            "or exact_lime, for which others are deleted too",
        ),
    ],
)
def test_settings_of_tables_are_refused_with_their_line(write, baseline, said):
    path = write(f"{FILE}baselines:\n- {{method: gradient}}\n- {{method: {baseline}}}")
    assert complaint(path) == f"file.yaml:7: baselines.1.{said}"


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        ("exact_lime, bandwidth: 1", "bandwidth: has no effect without data.text"),
        ("lime_package, bandwidth: 1", "bandwidth: has no effect without data.text"),
        ("lime, scale: [1], first_row: true", "first_row: has no effect without "),
        ("lime", "scale: required, and missing"),
    ],
)
def test_settings_of_documents_are_refused_for_tables(write, baseline, said):
    path = write(
        "data: {sklearn: diabetes}\nmodel: {kind: linear}\n"
        "objective: {gradient_matching: 1, pairwise_robustness: 1}\n"
        f"baselines: [{{method: {baseline}}}]\n"
    )
    assert complaint(path).startswith(f"file.yaml:4: baselines.0.{said}")


def test_a_document_of_one_word_has_its_effect_beside_the_others(write, tmp_path):
    write(f"{NOTES}price,no\n", "notes.csv")
    path = write(f"{FILE}baselines: [{{method: exact_lime}}, {{method: gradient}}]\n")
    built = po.problems.read_problem(path).build()
    curve = po.problems.run_problem(built, tmp_path / "out", quiet=True)
    lime, effects = curve.baselines
    texts = built.subject.points
    (row,) = [n for n, text in enumerate(texts) if text == "price"]
    result, own = lime.attributions, effects.attributions
    np.testing.assert_allclose(result[row], own[row], rtol=0, atol=1e-12)
    assert not np.allclose(result, own)

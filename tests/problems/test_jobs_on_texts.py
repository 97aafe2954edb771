"""Documents in problem files: what ``propopt explain`` tells, and baselines."""

from __future__ import annotations

import re

import numpy as np
import pytest
from command_line import done

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
SUBJECT = """\
data: {csv: notes.csv, text: text, target: label}
model: {kind: logistic, regularization: 1, output: log_odds, target_class: 'yes'}
"""
FILE = f"""{SUBJECT}\
objective: {{gradient_matching: 1, shared_robustness: {{graph: {{kind: complete}}}}}}
sweep: {{shared_robustness: [0.1, 1]}}
"""


# ---- one explanation


@pytest.fixture
def run(tmp_path, write):
    """What is written and printed, of documents with markup."""
    write(NOTES.replace("a good price,yes", "a good <i>café</i>,yes"), "notes.csv")
    return lambda explain: done(tmp_path, f"{SUBJECT}explain: {explain}\n")


@pytest.mark.parametrize(
    ("said", "settings"),
    [
        ("{}", {}),
        ("{law: lime, robustness: 2}", {"law": TextLaw(), "robustness": 2.0}),
        ("{units: output}", {"units": "output"}),
    ],
)
def test_files_hold_what_the_library_finds(run, said, settings):
    made = run(said)
    subject, table = made.subject, made.table("_attributions", index_col=0)
    best = po.explain(subject.function, subject.points, rng=0, **settings)
    assert table.columns.tolist() == list(subject.words)
    assert table.index.tolist() == subject.points.index.tolist()
    assert table.to_numpy() == pytest.approx(np.asarray(best.attributions), abs=1e-12)
    assert not table.to_numpy()[subject.table == 0.0].any()
    assert made.stored["n_features"] == len(table.T)
    page = (made.folder / "file.html").read_text(encoding="utf-8")
    assert "&lt;" in page
    assert "<i>" not in page
    if not settings:
        mean = table["good"].mean()
        assert "6 documents × " in made.printed
        assert re.search(rf"\n  good +{re.escape(f'{mean:+.3g}')}", made.printed)
        assert "contribution of each word to the " in made.printed
        assert "over the words that documents share" in made.printed
        other = run("{graph: {kind: threshold, threshold: 0.5}}").printed
        assert "threshold" in other  # the graph of the file is of where documents lie
        assert "cosine" not in other


# ---- baselines of a sweep


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


@pytest.mark.parametrize("method", ["exact_lime", "lime", "lime_package"])
def test_a_family_has_each_bandwidth(problem, method):
    for widths, listed in [
        ("[0.5, 0.1]", [0.5, 0.1]),
        ("{low: 0.1, high: 10, points: 3}", [0.1, 1.0, 10.0]),
    ]:
        methods = problem(f"{{method: {method}, bandwidth: {widths}}}").methods
        if method == "lime_package":
            result = [one.kernel_width / 100.0 for one in methods]
        else:
            result = [one.law.bandwidth for one in methods]
        assert result == pytest.approx(listed)


def test_a_sweep_tells_what_is_kept_and_of_a_family_the_nearest_to_the_front(problem):
    file = problem(
        "{method: exact_lime, bandwidth: [2, 0.01, 0.5]}, {method: gradient}"
    )
    curve = file.sweep(file.baselines(), progress=False)
    told = curve.distances().query("method == 'exact_lime'")
    assert told["parameter.bandwidth"].tolist() == [2.0, 0.01, 0.5]
    assert (told["excess"] > 0.0).all()
    assert "not_compared" not in told
    nearest = told["parameter.bandwidth"][told["excess"].idxmin()]
    assert curve.nearest("exact_lime").parameters["bandwidth"] == nearest == 0.01
    assert told["loss.gradient_matching"].idxmin() == 1  # it is nearly leaving one out
    assert (curve.units, curve.knee().units) == ("output", "output")
    faithful, robust, *_, gradient = curve.to_frame()["kept"]
    assert 0.0 < robust < faithful < gradient == 1.0


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

"""Tree models in difficult situations, against all coalitions of their own answers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from studies import study


cases = study("conformance.cases")
judging = study("conformance.judging")
libraries = study("conformance.libraries")
oracle = study("conformance.oracle")
tables = study("conformance.__main__")

REFUSED = {("infinite values", "LightGBM"): "expected a finite number"}
"""What is no explanation, and says why."""

EVERY = [(situation, library) for situation, library, _ in cases.cases(1)]
FEW = 24


@pytest.mark.sampled(FEW)
@pytest.mark.parametrize(
    ("situation", "library"), EVERY, ids=[f"{m}: {s}" for s, m in EVERY]
)
def test_values_are_those_of_the_definition(situation, library):
    """To the rounding of the model's own sums; float32 alone where it adds in that."""
    case = cases.made(situation, library, seed=0)
    exact = oracle.by_definition(case.answer, case.rows, case.background)
    if (situation, library) in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[situation, library]):
            libraries.call("propopt", case)
        return
    answer = libraries.call("propopt", case)
    most = judging.allowed(case, exact, case.eps)
    assert answer.note == ""  # exact, not sampled
    assert np.abs(answer.values - exact.values).max() <= most
    assert abs(answer.base - exact.base) <= most
    is_constant = np.ptp(case.answer(case.rows)) == 0.0
    assert np.abs(exact.values).max() > 1e3 * most or is_constant


def test_refused_cases_are_cases():
    assert REFUSED.keys() <= cases.MAKERS.keys()


# ---- The reference, and the judge


def test_mixed_rows_keep_dtypes():
    table = pd.DataFrame(
        {"a": np.arange(4, dtype=np.int8), "b": pd.Categorical(list("xyxy"))}
    )
    seen = []
    oracle.by_definition(
        lambda X: seen.append(X.dtypes.to_dict()) or np.ones(len(X)),
        table[:2].reset_index(drop=True),
        table[2:].reset_index(drop=True),
    )
    assert seen == [table.dtypes.to_dict()]


@pytest.fixture(scope="module")
def forest():
    case = cases.made("two outputs", "RandomForest", 0)
    return case, oracle.by_definition(case.answer, case.rows, case.background)


def answered(monkeypatch, answer):
    table = {"theirs": ("theirs", "theirs", answer)}
    monkeypatch.setattr(libraries, "LIBRARIES", table)


CHANGES = {
    "a tenth of a per cent": lambda x, base: (1.001 * x, base, "wrong"),
    "permuted columns": lambda x, base: (x[:, ::-1], base, "wrong"),
    "zero": lambda x, base: (0.0 * x, base, "wrong"),
    "another base": lambda x, base: (x, base * 1.001, "base wrong"),
    "float32": lambda x, base: (x.astype(np.float32), np.float32(base), "right"),
    "no base": lambda x, _: (x, None, "right"),
    "another shape": lambda x, base: (x[:, :2], base, "wrong"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_right_passes_and_what_is_wrong_does_not(monkeypatch, forest, change):
    case, exact = forest
    values, base, word = CHANGES[change](exact.values, exact.base)
    answered(monkeypatch, lambda _: libraries.Answered(values, base))
    assert judging.judged("theirs", case, exact).word == word


def test_refusals_are_told_from_crashes(monkeypatch, forest):
    case, exact = forest

    def refuse(_):
        raise NotImplementedError("no forests")

    answered(monkeypatch, refuse)
    answer = judging.judged("theirs", case, exact)
    assert (answer.word, answer.note) == ("refuses", "NotImplementedError: no forests")
    answered(monkeypatch, lambda _: {}["no such tree"])
    assert judging.judged("theirs", case, exact).word == "crashes"


def test_targets_and_answers_belong_together(forest):
    """Another output of the same model has other values."""
    case, exact = forest
    answer = libraries.call("propopt", replace(case, target=0))
    assert np.abs(answer.values - exact.values).max() > 0.01


# ---- The record


def test_the_record_has_every_case_and_ours_are_right():
    record = pd.read_csv(tables.RECORD)
    ours = record[record.library == "propopt"]
    keys = list(zip(ours.situation, ours.model, strict=True))
    assert keys == list(cases.MAKERS)
    for row in ours.itertuples():
        is_refused = (row.situation, row.model) in REFUSED
        assert row.verdict == ("refuses" if is_refused else "right"), row
        assert is_refused or row.right == row.seeds


def test_the_rows_of_the_readme_are_those_of_the_record():
    record = pd.read_csv(tables.RECORD)
    has_categories = record.situation.str.contains("categor")
    rounds = record.model.eq("RandomForest") & record.situation.str.contains(
        "float32|threshold"
    )
    text = (tables.RECORD.parents[2] / "README.md").read_text(encoding="utf-8")
    for kind in (has_categories, rounds):
        right = record[kind & record.verdict.eq("right")].library.value_counts()
        n = kind.sum() // record.library.nunique()
        assert n >= 5
        assert (
            f"| {right['propopt']} of {n} cases | {right.get('shap', 0)} of {n}" in text
        )


def test_shap_differs_on_edges_of_single_precision_without_its_check():
    shap = pytest.importorskip("shap")
    case = cases.made("rows that round across a threshold", "RandomForest", 0)
    exact = oracle.by_definition(case.answer, case.rows, case.background)
    explainer = shap.TreeExplainer(case.model, case.background)
    values = explainer.shap_values(case.rows, check_additivity=False)
    assert np.abs(values - exact.values).max() > 1e-3 * exact.size


def test_shap_takes_a_hundred_rows_of_a_background_and_bounds_errors_on_request():
    shap = pytest.importorskip("shap")
    case = cases.made("two classes, margin", "GradientBoosting", 0)
    table = pd.concat([case.background] * 20, ignore_index=True)
    assert len(shap.TreeExplainer(case.model, table).data) == 100 < len(table)
    answer = libraries.call("propopt", replace(case, background=table))
    assert answer.base == pytest.approx(case.answer(case.background).mean(), abs=1e-12)
    sampled = shap.PermutationExplainer(case.answer, case.background, seed=0)
    bounded = sampled(case.rows[:1], error_bounds=True, silent=True)
    assert (bounded.error_std > 0.0).any()

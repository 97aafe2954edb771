"""ExplainSettings are declared once: signatures and problem files have the same."""

import inspect
from dataclasses import MISSING, fields
from typing import get_args, get_type_hints

import numpy as np
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining import first_look, one_by_one, plan
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.plan import ExplainSettings
from propopt.explaining.targets import LawChoice
from propopt.problems.jobs.explain import ExplainSection


DECLARED = {field.name: field for field in fields(ExplainSettings)}
OF_CALLS = {"self", "model", "X", "data", "progress"}
"""What is explained, and whether to show a bar."""

NARROWER = {("Explainer", "contributions")}
"""Those of rows to come are made; no table has them."""

SIGNATURES = {
    "explain": (first_look, inspect.signature(po.explain)),
    "Explainer": (one_by_one, inspect.signature(po.Explainer)),
}

OF_FILES = {"reference": "n_reference"}
"""Keys of problem files that are called otherwise; None asks for no Explainer there."""


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_have_the_declared_settings_in_their_order(name):
    _, signature = SIGNATURES[name]
    own = [p for p in signature.parameters.values() if p.name not in OF_CALLS]
    assert [p.name for p in own] == [x for x in DECLARED if x in signature.parameters]
    assert all(p.kind is p.KEYWORD_ONLY for p in own)
    assert {p.name: p.default for p in own} == {
        p.name: DECLARED[p.name].default for p in own
    }
    annotated = {p.name for p in own if p.annotation != DECLARED[p.name].type}
    assert annotated == {x for kind, x in NARROWER if kind == name}


def test_each_setting_is_asked_for_somewhere_and_has_a_default():
    asked = {x for _, signature in SIGNATURES.values() for x in signature.parameters}
    assert asked - OF_CALLS == DECLARED.keys()
    assert all(field.default is not MISSING for field in DECLARED.values())


@pytest.mark.parametrize("key", ExplainSection.model_fields)
def test_problem_files_have_the_declared_settings(key):
    own, declared = ExplainSection.model_fields[key], DECLARED[OF_FILES.get(key, key)]
    assert own.default == (None if key in OF_FILES else declared.default)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("units", get_args(plan.UnitsChoice)),
        ("contributions", get_args(ContributionChoice)),
        ("metric", get_args(plan.FeatureMetric)),
        ("law", (*get_args(LawChoice), "lime")),
    ],
)
def test_problem_files_know_the_same_words(key, words):
    assert get_args(get_type_hints(ExplainSection)[key]) == words


def test_a_setting_as_by_default_is_not_refused():
    reasons = dict.fromkeys(DECLARED, "never")
    ExplainSettings().refuse(reasons)
    ExplainSettings(law="".join(["au", "to"]), n_reference=int("500")).refuse(reasons)


@pytest.mark.parametrize(
    ("name", "value"),
    [("scale", np.ones(3)), ("law", "none"), ("same_pattern", True), ("precision", 0)],
)
def test_any_other_is_refused_with_the_reason(name, value):
    with pytest.raises(InvalidInput, match=f"^{name}: since it is so$"):
        ExplainSettings(**{name: value}).refuse(
            dict.fromkeys(DECLARED, "since it is so")
        )


def test_a_row_that_is_explained_alone_is_asked_in_parts_too():
    sizes = []

    def model(X):
        sizes.append(len(X))
        return np.sin(X).sum(axis=1)

    X = np.random.default_rng(0).normal(size=(60, 3))
    po.explain(model, X[:1], data=X, batch_rows=7)
    assert max(sizes) == 7

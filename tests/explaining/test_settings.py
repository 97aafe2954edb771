"""Settings are declared once; one call reads its table and checks its weights once."""

import inspect
import sys
from collections import Counter
from dataclasses import MISSING, fields
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import propopt as po
from propopt.base import checks
from propopt.base.errors import InvalidInput
from propopt.explaining import first_look, one_by_one, plan
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.plan import ExplainSettings
from propopt.explaining.targets import LawChoice
from propopt.problems.jobs.explain import ExplainSection
from propopt.tables import frames
from propopt.tables.schema import TableSchema, read_with_schema


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
    for key, own in ExplainSection.model_fields.items():
        default = DECLARED[OF_FILES.get(key, key)].default
        assert own.default == (None if key in OF_FILES else default)


def test_problem_files_know_the_same_words():
    known = get_type_hints(ExplainSection)
    words = {
        "units": get_args(plan.UnitsChoice),
        "contributions": get_args(ContributionChoice),
        "metric": get_args(plan.FeatureMetric),
        "law": (*get_args(LawChoice), "lime"),
    }
    assert {key: get_args(known[key]) for key in words} == words


def test_a_setting_other_than_by_default_is_refused_with_the_reason():
    reasons = dict.fromkeys(DECLARED, "since it is so")
    ExplainSettings().refuse(reasons)
    ExplainSettings(law="".join(["au", "to"]), n_reference=int("500")).refuse(reasons)
    others = {"scale": np.ones(3), "law": "none", "same_pattern": True, "precision": 0}
    for name, value in others.items():
        with pytest.raises(InvalidInput, match=f"^{name}: since it is so$"):
            ExplainSettings(**{name: value}).refuse(reasons)


COLUMNS = list("abcde")
ONCE = (1, len(COLUMNS), 1)
"""Encodings, columns read, and checks of weights."""
TWO_TABLES = (2, 2 * len(COLUMNS), 1)
COUNTED = {
    read_with_schema.__code__: "encodings",
    TableSchema.encode.__code__: "encodings",
    frames.read_numbers.__code__: "columns read",
    checks.read_nonnegative.__code__: "checks",
    checks.read_each_nonnegative.__code__: "checks",
}


def counted(call, *given, **settings):
    """How often each is called; tolerances are no weights."""
    counts = Counter()

    def heard(frame, event, _):
        name = COUNTED.get(frame.f_code) if event == "call" else None
        if name is not None and frame.f_locals.get("label") != "tolerance":
            counts[name] += 1

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        call(*given, **settings)
    finally:
        sys.setprofile(before)
    return tuple(counts[name] for name in dict.fromkeys(COUNTED.values()))


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(120, 5, n_informative=4, n_redundant=0, random_state=0)
    table = pd.DataFrame(X, columns=COLUMNS)
    boosted = HistGradientBoostingClassifier(max_iter=5).fit(table, y)
    return LogisticRegression().fit(table, y), boosted, table


def test_explain_reads_its_table_once(data):
    model, boosted, table = data
    for settings in (
        {},
        {"robustness": 1.0},
        {"units": "output"},
        {"units": "output", "contributions": "slopes"},
        {"law": "none", "same_pattern": True},
    ):
        assert counted(po.explain, model, table, **settings) == ONCE
        found = counted(po.explain, model, table[:30], data=table, **settings)
        assert found == TWO_TABLES
    assert counted(po.explain, boosted, table) == ONCE  # a margin is tried too


def test_an_explainer_reads_its_table_once_and_new_rows_once(data):
    model, _, table = data
    for units, n_reference in (("scaled", 50), ("output", 500)):
        explainer = po.Explainer(model, table, units=units, n_reference=n_reference)
        assert counted(explainer.fit) == ONCE
        assert counted(explainer.explain, table[:30]) == (1, len(COLUMNS), 0)
        assert counted(explainer.fit, table[:30]) == TWO_TABLES

"""How often one call reads its table, and checks its weights."""

import sys
from collections import Counter

import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import propopt as po
from propopt.base import checks
from propopt.tables import frames
from propopt.tables.schema import TableSchema, read_with_schema


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


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        120, len(COLUMNS), n_informative=4, n_redundant=0, random_state=0
    )
    return pd.DataFrame(X, columns=COLUMNS), y


@pytest.fixture(scope="module")
def table(data):
    return data[0]


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


@pytest.fixture(scope="module")
def boosted(data):
    return HistGradientBoostingClassifier(max_iter=5).fit(*data)


def counted(call):
    """How often each is called; tolerances are no weights."""
    counts = Counter()

    def heard(frame, event, _):
        name = COUNTED.get(frame.f_code) if event == "call" else None
        if name is not None and frame.f_locals.get("label") != "tolerance":
            counts[name] += 1

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        call()
    finally:
        sys.setprofile(before)
    return tuple(counts[name] for name in dict.fromkeys(COUNTED.values()))


EXPLAINED = {
    "slopes": ({}, ONCE),
    "a weight": ({"robustness": 1.0}, ONCE),
    "shapley": ({"units": "output"}, ONCE),
    "steps": ({"units": "output", "contributions": "slopes"}, ONCE),
    "no law": ({"law": "none", "same_pattern": True}, ONCE),
}
"""Settings, and how many encodings, columns read and checks they take."""


@pytest.mark.parametrize(("settings", "expected"), EXPLAINED.values(), ids=EXPLAINED)
def test_explain_reads_its_table_once(model, table, settings, expected):
    assert counted(lambda: po.explain(model, table, **settings)) == expected


def test_explain_reads_each_of_two_tables_once(model, table):
    found = counted(lambda: po.explain(model, table[:30], data=table))
    assert found == TWO_TABLES


def test_a_table_is_read_once_where_a_margin_is_tried_too(boosted, table):
    assert counted(lambda: po.explain(boosted, table)) == ONCE


@pytest.mark.parametrize("units", ["scaled", "output"])
@pytest.mark.parametrize("n_reference", [50, 500])
def test_a_fit_reads_its_table_once(model, table, units, n_reference):
    explainer = po.Explainer(model, table, units=units, n_reference=n_reference)
    assert counted(explainer.fit) == ONCE


def test_a_fit_to_rows_reads_these_and_the_table_once(model, table):
    explainer = po.Explainer(model, table)
    assert counted(lambda: explainer.fit(table[:30])) == TWO_TABLES


@pytest.mark.parametrize("units", ["scaled", "output"])
def test_new_rows_are_read_once(model, table, units):
    fitted = po.Explainer(model, table, units=units).fit()
    assert counted(lambda: fitted.explain(table[:30])) == (1, len(COLUMNS), 0)

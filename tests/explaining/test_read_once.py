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
from propopt.tables.schema import TableSchema


COLUMNS = list("abcde")

COUNTED = {
    TableSchema.of.__func__.__code__: "schemas",
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
    "slopes": ({}, (1, 3, 20, 13)),
    "a weight": ({"robustness": 1.0}, (1, 3, 20, 9)),
    "shapley": ({"units": "output"}, (1, 3, 20, 13)),
    "steps": ({"units": "output", "contributions": "slopes"}, (1, 3, 20, 13)),
    "no law": ({"law": "none", "same_pattern": True}, (1, 3, 20, 13)),
}
"""Settings, and how many schemas, encodings, columns read and checks they take."""


@pytest.mark.parametrize("settings, expected", EXPLAINED.values(), ids=EXPLAINED)
def test_explain_reads_its_table_once(model, table, settings, expected):
    assert counted(lambda: po.explain(model, table, **settings)) == expected


def test_explain_reads_each_of_two_tables_once(model, table):
    found = counted(lambda: po.explain(model, table[:30], data=table))
    assert found == (1, 3, 20, 13)


def test_a_table_is_read_once_where_a_margin_is_tried_too(boosted, table):
    assert counted(lambda: po.explain(boosted, table)) == (2, 3, 25, 13)


@pytest.mark.parametrize("units", ["scaled", "output"])
@pytest.mark.parametrize("n_reference", [50, 500])
def test_a_fit_reads_its_table_once(model, table, units, n_reference):
    explainer = po.Explainer(model, table, units=units, n_reference=n_reference)
    assert counted(explainer.fit) == (1, 4, 25, 13)


def test_a_fit_to_rows_reads_these_and_the_table_once(model, table):
    explainer = po.Explainer(model, table)
    assert counted(lambda: explainer.fit(table[:30])) == (1, 4, 25, 13)


@pytest.mark.parametrize("units", ["scaled", "output"])
def test_new_rows_are_read_once(model, table, units):
    fitted = po.Explainer(model, table, units=units).fit()
    assert counted(lambda: fitted.explain(table[:30])) == (0, 32, 160, 0)


def test_interpolated_rows_are_read_once(model, table):
    fitted = po.Explainer(model, table).fit()
    assert counted(lambda: fitted.interpolate(table[:30])) == (0, 2, 10, 0)

"""Models of a table of people, wrapped."""

from __future__ import annotations

import pytest
from people import SMALL, Spy, X, Y, additive, closed_form, one_hot_logistic

import propopt as po


@pytest.fixture
def spy():
    return Spy(one_hot_logistic()).fit(X, Y)


@pytest.fixture
def function(spy):
    schema = po.TableSchema.of(X, categorical=["job"])
    return po.wrap(spy, output="log_odds", data=schema)


@pytest.fixture
def expected(spy):
    return closed_form(spy.fitted_)


@pytest.fixture
def simple():
    return po.wrap(additive, data=po.TableSchema.of(SMALL, categorical=["job"]))

"""Inductive explainers have kernels, which know no missing numbers, and say so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.inductive import GaussianProcessExplainer


COMPLETE = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 3.0]})
X = COMPLETE.mask(COMPLETE == 0.0)
CURE = r"in 2 of 3 rows, .*SimpleImputer\(add_indicator=True\)\), or take po\.Explainer"


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_numpy()], ids=["df", "a"])
def test_missing_numbers_are_refused_with_the_cure(form):
    explainer = GaussianProcessExplainer(lengthscale=1.0)
    with pytest.raises(InvalidInput, match=r"^X: numbers are missing .NaN. " + CURE):
        explainer.fit(form(X), np.ones((3, 2)))
    explainer.fit(form(COMPLETE), np.ones((3, 2)))
    with pytest.raises(InvalidInput, match=CURE):
        explainer.explain(form(X))


def test_tables_of_a_schema_are_refused_alike():
    function = po.wrap(lambda t: t["a"].fillna(0) + t["b"].fillna(0), data=X)
    with pytest.raises(InvalidInput, match=CURE):
        GaussianProcessExplainer(lengthscale=1.0).fit(X, function=function)


def test_the_cure_works():
    function = po.wrap(lambda t: t["a"].fillna(0) + t["b"].fillna(0) ** 2, data=X)
    best = po.Explainer(function, data=X, robustness=0.5).fit(X).explain(X.iloc[:2])
    assert np.isfinite(best.attributions).all()

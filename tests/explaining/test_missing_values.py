"""One line from a model and a table with missing values to an explanation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import propopt as po


RNG = np.random.default_rng(0)
COMPLETE = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
Y = COMPLETE["a"] * 2 + COMPLETE["b"] ** 2
X = COMPLETE.mask(RNG.random(COMPLETE.shape) < 0.1)
ABSENT = X.isna().to_numpy()
FORMS = {"table": lambda t: t, "array": lambda t: t.to_numpy()}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@each_form
def test_slopes_are_scaled_and_effects_are_not(form):
    model = make_pipeline(SimpleImputer(), Ridge()).fit(form(X), Y)
    best = po.explain(model, form(X), robustness=0.0, same_pattern=True)
    weights = model[-1].coef_
    slopes = np.broadcast_to(weights * X.std(ddof=0).to_numpy(), X.shape)
    result = best.gradient
    np.testing.assert_allclose(result[~ABSENT], slopes[~ABSENT], rtol=1e-6)
    np.testing.assert_allclose(result[ABSENT], 0.0, atol=1e-8)  # imputed by the mean


@each_form
def test_boxes_have_exact_effects(form):
    model = HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5)
    model.fit(form(X), Y)
    best = po.explain(model, form(X), robustness=0.0, same_pattern=True)
    assert best.target_error == 0.0
    n = int(ABSENT[:, 0].argmax())
    assert best.gradient[n, 0] != 0.0


def test_edges_across_patterns_are_told():
    model = HistGradientBoostingRegressor(max_iter=5).fit(X, Y)
    with pytest.warns(po.errors.MissingPatternsWarning, match="other columns are miss"):
        po.explain(model, X, robustness=0.1)

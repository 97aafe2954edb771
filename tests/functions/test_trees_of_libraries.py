"""What the data law says of trees does not depend on the library that grew them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import propopt as po
from propopt.base.errors import InvalidInput


# ---- LightGBM keeps names with an underscore for each blank

BLANKS = ["Call  Failure", "Seconds of Use", "a"]


@pytest.mark.parametrize("searched", [False, True])
def test_columns_with_blanks_are_those_that_lightgbm_keeps(searched):
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=BLANKS)
    model = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1)
    if searched:
        model = GridSearchCV(model, {"max_depth": [2]}, cv=2)
    model.fit(table, 2.0 * table[BLANKS[0]] - table[BLANKS[1]])
    assert list(model.feature_names_in_) == ["Call__Failure", "Seconds_of_Use", "a"]
    function = po.wrap(model)
    np.testing.assert_array_equal(function.value(table), model.predict(table))
    result = po.explain(function, table, data=table, robustness=0.1).to_frame()
    assert list(result.columns) == BLANKS
    told = po.explain(model, table, data=table, robustness=0.1)
    np.testing.assert_allclose(result, told.attributions, rtol=1e-9, atol=1e-12)
    for other in (
        table[BLANKS[::-1]],
        table.rename(columns={BLANKS[0]: "Call Failure"}),
        table.set_axis(["Call  Failure", "Call__Failure", "a"], axis=1),
    ):
        with pytest.raises(InvalidInput, match="columns"):
            function.value(other)
    # what the message says does it
    renamed = table.set_axis(list("xyz"), axis=1)
    with pytest.raises(InvalidInput, match=r"data=X\) hands it X's own, and a problem"):
        function.value(renamed)
    if not searched:  # which scikit-learn refuses itself
        own = po.wrap(model, data=renamed).value(renamed)
        np.testing.assert_array_equal(own, model.predict(table))

"""Models that nobody knows: explained by what they are, and the result says by what."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.neural_network import MLPRegressor

import propopt as po
from propopt.base.errors import InvalidInput


RNG = np.random.default_rng(4)
X = pd.DataFrame(RNG.normal(size=(120, 4)), columns=list("abcd"))
Y = X["a"] * X["b"] + X["c"] + 0.1 * RNG.normal(size=120)
ROWS = X.iloc[:30]
FOREST = RandomForestRegressor(20, min_samples_leaf=5, random_state=0).fit(X, Y)


class Service:
    """Bound methods, as of a client of a model elsewhere."""

    def ask(self, table):
        return np.asarray(FOREST.predict(table))


VOTE = VotingRegressor(
    [("forest", FOREST), ("network", MLPRegressor(hidden_layer_sizes=5, max_iter=50))]
)
UNKNOWN = {
    "lambda": lambda table: FOREST.predict(table),
    "bound method": Service().ask,
    "vote": VOTE,
}


@pytest.mark.parametrize("model", UNKNOWN.values(), ids=UNKNOWN)
def test_a_model_that_jumps_is_explained_under_the_data_law(model):
    if model is VOTE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            VOTE.fit(X, Y)
    result = po.explain(model, ROWS, data=X)  # warnings are errors
    assert "data law of 120 rows" in result.parameters["gradient"]
    assert result.parameters["gradient"].startswith("500 draws, 10 blocks")
    assert result.target.n_blocks == 10
    assert 0.0 < result.target_error < 0.5
    assert result.evaluations == 500 * 30


def test_it_is_what_the_forest_itself_is_explained_by():
    known = po.explain(FOREST, ROWS, data=X)
    unknown = po.explain(UNKNOWN["lambda"], ROWS, data=X)
    assert known.target_error == 0.0
    ours, theirs = unknown.attributions.ravel(), known.attributions.ravel()
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98


def test_a_smooth_model_that_nobody_knows_keeps_its_gradient():
    result = po.explain(lambda table: np.sin(table["a"]) * table["b"], ROWS, data=X)
    assert "central differences" in result.parameters["gradient"]


def test_who_gives_a_step_has_it():
    wide = po.wrap(UNKNOWN["lambda"], step=0.3)
    result = po.explain(wide, ROWS)
    assert "central differences, step 0.3" in result.parameters["gradient"]


def test_a_function_takes_a_table_of_reference_rows_but_no_schema():
    ours = po.explain(po.wrap(FOREST), ROWS, data=X, robustness=0.1)
    same = po.explain(FOREST, ROWS, data=X, robustness=0.1)
    np.testing.assert_allclose(ours.attributions, same.attributions, atol=1e-12)
    others = po.explain(po.wrap(FOREST), ROWS, robustness=0.1)
    assert np.abs(ours.attributions - others.attributions).max() > 1e-3
    with pytest.raises(InvalidInput, match="give a table of reference rows"):
        po.explain(po.wrap(FOREST), ROWS, data=po.TableSchema.of(X))

"""One default budget for what is made in parts: its size changes no digit."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.resources import Budget, DrawPlan
from propopt.laws import perturbations
from propopt.lime import surrogates
from propopt.lime.diagnosis import evidence
from propopt.lime.explanation import evidence_of
from propopt.losses.graphs import features


RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 4))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
TREE = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, Y)
KERNELS = SVR(C=10.0).fit(X, Y)
ROWS = X[:7]


def drawn_orders():
    rng, plan = np.random.default_rng(1), DrawPlan(20)
    return perturbations.shapley_orders(TREE.predict, X[7:], ROWS, rng, plan).blocks


def estimated(model):
    best = po.lime.limits(model.predict, ROWS, data=X)
    return [best.coefficients, best.intercept, best.standard_errors]


def variances():
    law = po.lime.GaussianLaw.from_data(X)
    return [po.lime.limits(TREE.predict, ROWS, law=law).r2]


def scatter_in_cells():
    lime = po.lime.limits(TREE, ROWS, data=X)
    return [evidence_of(lime, lime.subject, 1000).cell_sd(np.arange(7))]


CASES = {
    "features": (features, lambda: [po.graphs.cosine_graph(X, 3).similarities.data]),
    "orders": (perturbations, drawn_orders),
    "trees": (surrogates, partial(estimated, TREE)),
    "kernels": (surrogates, partial(estimated, KERNELS)),
    "variances": (surrogates, variances),
    "evidence": (evidence, scatter_in_cells),
}


@pytest.mark.parametrize(("module", "result"), CASES.values(), ids=CASES)
def test_parts_of_one_row_change_no_digit(module, result, monkeypatch):
    whole, counts = list(result()), []

    def blocks(n_rows, row_bytes, copies=1):
        counts.append(n_rows)
        return Budget(1).blocks(n_rows, row_bytes, copies)

    monkeypatch.setattr(module, "AT_ONCE", SimpleNamespace(blocks=blocks))
    for own, expected in zip(result(), whole, strict=True):
        np.testing.assert_array_equal(own, expected)
    assert max(counts) > 1

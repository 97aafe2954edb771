"""One default budget for what is made in parts: its size changes no digit."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

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


def similarities() -> Any:
    graph = po.graphs.cosine_graph(X, 3)
    return [graph.similarities.toarray()]


def drawn_orders() -> Any:
    rng = np.random.default_rng(1)
    return list(
        perturbations.shapley_orders(
            TREE.predict, X[7:], ROWS, rng, DrawPlan(20)
        ).blocks
    )


def estimated(model: Any) -> Callable[[], Any]:
    def limits() -> Any:
        best = po.lime.limits(model.predict, ROWS, data=X)
        return [best.coefficients, best.intercept, best.standard_errors]

    return limits


def variances() -> Any:
    law = po.lime.GaussianLaw.from_data(X)
    return [po.lime.limits(TREE.predict, ROWS, law=law).r2]


def scatter_in_cells() -> Any:
    lime = po.lime.limits(TREE, ROWS, data=X)
    return [evidence_of(lime, lime.subject, 1000).cell_sd(np.arange(7))]


CASES = [
    (features, similarities),
    (perturbations, drawn_orders),
    (surrogates, estimated(TREE)),
    (surrogates, estimated(KERNELS)),
    (surrogates, variances),
    (evidence, scatter_in_cells),
]


@pytest.mark.parametrize(
    ("module", "result"),
    [pytest.param(*case, id=case[0].__name__.rpartition(".")[2]) for case in CASES],
)
def test_parts_of_one_row_change_no_digit(
    module: ModuleType, result: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, counts = result(), []

    def blocks(n_rows: int, row_bytes: int, copies: int = 1) -> Any:
        counts.append(n_rows)
        return Budget(1).blocks(n_rows, row_bytes, copies)

    monkeypatch.setattr(module, "AT_ONCE", SimpleNamespace(blocks=blocks))
    for own, expected in zip(result(), whole, strict=True):
        np.testing.assert_array_equal(own, expected)
    assert max(counts) > 1

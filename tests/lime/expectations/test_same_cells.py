"""Rows of the same cell are computed once, and have the same limits."""

from __future__ import annotations

import numpy as np
import pytest
from lime_fixture import FUNCTIONS

import propopt as po
from propopt.base.arrays import Array, Points
from propopt.lime.expectations import ExactLimits
from propopt.structures.products.sums import SumOfProducts


@pytest.fixture
def X(rng: np.random.Generator) -> Points:
    return rng.normal(size=(90, 3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_limits_of_many_rows_are_those_of_each(name: str, X: Points) -> None:
    exact = ExactLimits(FUNCTIONS[name], po.lime.TabularLaw.from_data(X, n_bins=3))
    joint = exact.of(X)
    widths = np.where(np.arange(90) % 2 == 0, 0.5, 1.5)
    by_width = exact.of(X, widths)
    for n in range(0, 90, 7):
        for result, width in ((joint, None), (by_width, widths[n : n + 1])):
            alone = exact.of(X[n : n + 1], width)
            np.testing.assert_allclose(
                result.coefficients[n], alone.coefficients[0], rtol=1e-12, atol=1e-15
            )
            np.testing.assert_allclose(result.alpha[n], alone.alpha[0], rtol=1e-14)
            np.testing.assert_allclose(result.mean[n], alone.mean[0], rtol=1e-13)
            np.testing.assert_allclose(result.log_weight[n], alone.log_weight[0])


def test_cells_of_columns_that_f_reads_are_computed_once(
    X: Points, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    contrasts = SumOfProducts.contrasts

    def counted(self: SumOfProducts, P: Array, R: Array) -> object:
        sizes.append(P.shape[1])
        return contrasts(self, P, R)

    monkeypatch.setattr(SumOfProducts, "contrasts", counted)
    exact = ExactLimits(FUNCTIONS["box"], po.lime.TabularLaw.from_data(X, n_bins=3))
    result = exact.of(X)
    assert sum(sizes) == 9  # bins of the first two columns
    assert len(np.unique(result.coefficients, axis=0)) <= 9
    assert len(np.unique(result.alpha.round(12), axis=0)) == 1


def test_the_same_row_and_width_twice_is_computed_once(X: Points) -> None:
    exact = ExactLimits(FUNCTIONS["bump"], po.lime.TabularLaw.from_data(X))
    result = exact.of(np.repeat(X[:1], 4, axis=0), np.array([0.5, 2.0, 0.5, 2.0]))
    np.testing.assert_array_equal(result.coefficients[:2], result.coefficients[2:])
    assert not np.array_equal(result.coefficients[0], result.coefficients[1])


def test_rows_of_normal_laws_are_no_cells(X: Points) -> None:
    law = po.lime.GaussianLaw.from_data(X, kernel_width=1.0)
    assert law.cells(X) is X
    glime = po.lime.GlimeLaw(po.lime.TabularLaw.from_data(X))
    assert glime.cells(X).max() == 3

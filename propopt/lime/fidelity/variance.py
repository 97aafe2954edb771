"""How much a function varies under the weighted law, and how much is explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array, Points, Values
from propopt.checks import read_rng
from propopt.functions import Function
from propopt.lime.expectations import Limits
from propopt.lime.fidelity.exact_variance import (
    PAIRS_AT_MOST,
    exact_variance,
    n_pairs,
)
from propopt.lime.laws import LimeLaw
from propopt.structures.products import SumOfProducts


VARIANCE_DRAWS: Final = 4096


@final
@dataclass(frozen=True, eq=False)
class Variance:
    """Var_Q f in n situations.

    Parameters
    ----------
    values : array (n,)
        The variances.
    standard_errors : array (n,)
        Their standard errors; 0 where they are exact.
    source : str
        ``"exact"``, or how they were estimated.
    """

    values: Values
    standard_errors: Values
    source: str

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return self.source == "exact"


def variance(
    function: Function | SumOfProducts,
    law: LimeLaw,
    points: Points,
    widths: Values | None = None,
    *,
    n_draws: int = VARIANCE_DRAWS,
    rng: int | np.random.Generator = 0,
) -> Variance:
    """Var_Q f, exact where a function is a sum of products that are not too many.

    E_Q f² is the sum over pairs of products, whose factors have means in closed form:
    of two sets what they have in common, of two bumps a bump. With L products and D
    columns these are L² D / 2 numbers for each situation; beyond 2²⁷ of them, or for
    another function, the variance is that of draws from Q.

    Parameters
    ----------
    function : Function or SumOfProducts
        f.
    law : LimeLaw
        Of the samples, bits and weights.
    points : array (n, D)
        Encoded rows.
    widths : array (n,), optional
        Kernel widths, one for each row; by default the law's.
    n_draws : int
        Draws for each situation where it is estimated.
    rng : int or numpy.random.Generator
        Where these come from.

    Returns
    -------
    Variance
    """
    own = law.widths(points, widths)
    products = function if isinstance(function, SumOfProducts) else function.products
    if isinstance(products, SumOfProducts):
        affordable = n_pairs(products, len(points)) <= PAIRS_AT_MOST
        found = exact_variance(products, law, points, own) if affordable else None
        if found is not None:
            return Variance(found, np.zeros(len(points)), "exact")
    return _estimated(_read(function), law, points, own, n_draws, read_rng(rng))


def _read(function: Function | SumOfProducts) -> Callable[[Points], Values]:
    """Its values at encoded points."""
    if isinstance(function, SumOfProducts):
        return function.value
    return function.value_at


def _estimated(
    evaluate: Callable[[Points], Values],
    law: LimeLaw,
    points: Points,
    widths: Values,
    n_draws: int,
    rng: np.random.Generator,
) -> Variance:
    """The variance s² of S draws, with √((m_4 − s⁴ (S − 3) / (S − 1)) / S)."""
    moments = np.empty((2, len(points)))
    for n, (point, width) in enumerate(zip(points, widths, strict=True)):
        draws = law.with_width(float(width)).draw_weighted(point[None], n_draws, rng)
        moments[:, n] = _second_and_fourth(evaluate(draws.samples[0]))
    square, fourth = moments
    error = fourth - square**2 * (n_draws - 3) / (n_draws - 1)
    errors = np.sqrt(np.maximum(error, 0.0) / n_draws)
    source = f"estimate ({n_draws} draws of the weighted law for each row)"
    return Variance(square, errors, source)


def _second_and_fourth(values: Values) -> tuple[float, float]:
    apart: Array = values - values.mean()
    return float((apart**2).sum() / (len(values) - 1)), float((apart**4).mean())


def weighted_r2(limits: Limits, total: Variance) -> Values:
    """R² = Σ_j α_j (1 − α_j) β_j² / Var_Q f of the surrogate, (n,).

    Under Q bits are independent, so these are the parts of the variance that each bit
    explains. It is 1 where f is constant.

    Parameters
    ----------
    limits : Limits
        The surrogate.
    total : Variance
        Var_Q f.
    """
    spread = limits.alpha * (1.0 - limits.alpha)
    explained = np.einsum("nd,nd->n", spread, limits.coefficients**2)
    some = total.values > 0.0
    return np.divide(explained, total.values, out=np.ones(len(some)), where=some)


def local_gap(limits: Limits, values: Values) -> Values:
    """f(ξ) − Σ β: how far the surrogate is from f at the row itself, (n,).

    Parameters
    ----------
    limits : Limits
        The surrogate.
    values : array (n,)
        f at the rows.
    """
    return np.asarray(values - limits.at_row)

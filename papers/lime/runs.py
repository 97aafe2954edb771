"""LIME run many times at one row, beside what it tends to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Values
from propopt.laws.regressions import Regressions
from propopt.lime.exact_limits import ExactLimits, Limits
from propopt.lime.finite_samples import expected
from propopt.lime.laws.lime_law import LimeLaw
from propopt.structures.products.sums import SumOfProducts


ValuesOf: TypeAlias = Callable[[Array], Values]
_AT_ONCE: Final = 2**21
"""Numbers of samples that are drawn together."""


@final
@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How LIME is run.

    Parameters
    ----------
    n_samples : int
        n, in a run; with ``first_row`` the row itself is one of them.
    n_runs : int
        R.
    ridge : float
        λ, on all coefficients but the intercept.
    first_row : bool
        Whether the row itself is the first sample, as in the package.
    seed : int
        Of all runs.
    """

    n_samples: int
    n_runs: int = 100
    ridge: float = 1.0
    first_row: bool = True
    seed: int = 0


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """R runs of LIME with n samples each, and the theory; intercepts come first.

    Parameters
    ----------
    estimates : array (R, D + 1)
        What each run gave.
    limit : array (D + 1,)
        What infinitely many samples give, without ridge: the papers' theory.
    expected : array (D + 1,)
        The mean of a run of n samples: with ridge, and with the row itself.
    labels : tuple of str (D,)
        Names of the columns.
    printed : array (D + 1,), optional
        What a formula of the paper gives, as it is printed there.
    """

    estimates: Array
    limit: Values
    expected: Values
    labels: tuple[str, ...]
    printed: Values | None = None

    @property
    def mean(self) -> Values:
        """Over the runs, (D + 1,)."""
        return np.asarray(self.estimates.mean(axis=0))

    @property
    def spread(self) -> Values:
        """The standard deviation of one run, (D + 1,)."""
        return np.asarray(self.estimates.std(axis=0, ddof=1))

    @cached_property
    def scores(self) -> Values:
        """(mean − expected) / standard error of the mean, (D + 1,)."""
        errors = self.spread / np.sqrt(len(self.estimates))
        return np.asarray((self.mean - self.expected) / errors)

    def to_frame(self) -> pd.DataFrame:
        """A row for the intercept, and one for each column."""
        return pd.DataFrame(
            {
                "coefficient": ["intercept", *self.labels],
                "limit": self.limit,
                "expected at n": self.expected,
                "mean of runs": self.mean,
                "sd of a run": self.spread,
                "z": self.scores,
            }
        )


def run_lime(
    values_of: ValuesOf,
    exact: SumOfProducts,
    law: LimeLaw,
    row: Values,
    settings: RunSettings,
) -> Runs:
    """Runs of LIME at one row.

    Parameters
    ----------
    values_of : callable
        f, from points (N, D) to values (N,).
    exact : SumOfProducts
        The same f.
    law : LimeLaw
        Of samples, bits and weights.
    row : array (D,)
        What is explained.
    settings : RunSettings
        How often, and with how many samples.
    """
    rng = np.random.default_rng(settings.seed)
    counts = runs_together(settings, len(row))
    parts = [_runs(values_of, law, row, settings, n, rng) for n in counts]
    limits = ExactLimits(exact, law).of(row[None, :])
    return Runs(
        estimates=np.concatenate(parts),
        limit=with_intercept(limits),
        expected=expected_at(limits, values_of(row[None, :])[0], settings),
        labels=law.labels.feature_names(len(row)),
    )


def with_intercept(limits: Limits) -> Values:
    """β_0, β_1, ..., β_D of the first row, (D + 1,)."""
    return np.concatenate([limits.intercept[:1], limits.coefficients[0]])


def expected_at(limits: Limits, value: float, settings: RunSettings) -> Values:
    """The mean of a run of n samples, intercept first, (D + 1,).

    See :func:`propopt.lime.finite_samples.expected`.
    """
    fit = expected(
        limits,
        np.array([value]),
        settings.n_samples,
        settings.ridge,
        settings.first_row,
    )
    return np.concatenate([fit.intercept, fit.coefficients[0]])


def fit_bits(bits: Array, weights: Array, values: Array, ridge: float) -> Array:
    """Weighted ridge regressions on bits (R, n, D), (R, D + 1) with intercepts."""
    design = np.concatenate([np.ones((*bits.shape[:2], 1)), bits], axis=2)
    root = np.full((len(bits), design.shape[2]), np.sqrt(ridge))
    root[:, 0] = 0.0
    return Regressions(design, values, weights, root).slopes


def _runs(
    values_of: ValuesOf,
    law: LimeLaw,
    row: Values,
    settings: RunSettings,
    n_runs: int,
    rng: np.random.Generator,
) -> Array:
    rows, first_row = np.tile(row, (n_runs, 1)), settings.first_row
    draws = law.draw(rows, settings.n_samples, rng, first_row=first_row)
    points = draws.samples.reshape(-1, len(row))
    values = values_of(points).reshape(draws.weights.shape)
    return fit_bits(draws.bits, draws.weights, values, settings.ridge)


def runs_together(settings: RunSettings, n_columns: int) -> Sequence[int]:
    """How many runs are made at once, one after the other; R in all."""
    size = max(1, _AT_ONCE // (settings.n_samples * n_columns))
    whole, rest = divmod(settings.n_runs, size)
    return [size] * whole + [rest] * (rest > 0)

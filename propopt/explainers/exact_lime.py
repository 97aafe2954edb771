"""Tabular LIME without sampling noise: what its coefficients tend to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions, Values
from propopt.checks import read_count, read_positive
from propopt.errors import InvalidInput
from propopt.explainers.background import checked_background, same_columns
from propopt.explainers.base import Baseline, Findings, PackageUnits
from propopt.explainers.quantile_bins import law_of_rows
from propopt.explainers.request import Request
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.expectations.steps import bit_steps
from propopt.lime.laws import LimeLaw
from propopt.results.explanation import Parameter
from propopt.structures.products import NoProducts, SumOfProducts


BinWeights: TypeAlias = Literal["frequency", "uniform"]
"""How often each bin is drawn: as often as in the table, or all alike."""

LEAST_STEP: Final = 1e-8
"""|v_j| no larger than this, over the largest |x_j| of the rows, is zero."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactLime(Baseline):
    """Coefficients of tabular LIME for infinitely many samples, exactly.

    β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0],

    where z_j says whether column j is in the bin of the row, and Q is the law of LIME's
    samples times their weights (after Garreau and von Luxburg 2020). It is what
    :class:`LimePackage` scatters around: no seed, no noise, and 50 kernel widths cost
    little more than one. It takes functions that are sums of products
    (``function.products``): trees and sums of trees, linear and additive functions,
    gaussian kernel machines. Its ``evaluations`` are those that compare the function
    with what it was read as.

    With ``units="gradient"`` the coefficient of a number is divided by the distance
    that the column moves where the bit turns on,

    β_j / v_j,  v_j = E_Q[x_j | z_j = 1] − E_Q[x_j | z_j = 0],

    which of a linear function is its slope, and so comparable with gradients. A bin in
    the middle of its column has v_j near 0: there LIME does not see the feature at all
    (β_j vanishes with v_j if f is linear), and where f is curved the quotient can be
    far larger than any slope. Coefficients of categories, and of numbers that are
    missing in the row, stay differences of outputs, which their gradients are too.

    ============================ ======= =============================================
    ``details["intercept"]``     (N,)    β_0
    ``details["local_gap"]``     (N,)    f(x) less the surrogate at the row, Σ β
    ``details["alpha"]``         (N, D)  Q(z_j = 1)
    ``details["mean_weight"]``   (N,)    C, the mean weight of a sample
    ``details["effective_share"]`` (N,)  of n samples this share counts: C² / E π²
    ``details["steps"]``         (N, D)  with ``units="gradient"``: v_j, 1 where the
                                         coefficient stays as it is
    ``details["undefined"]``     (N,)    with ``units="gradient"``: how many v_j are 0;
                                         these attributions are set to 0
    ============================ ======= =============================================

    Parameters
    ----------
    kernel_width : float or None
        ν, in numbers of bits; None is the package's 0.75 √D.
    n_bins : int
        Of each column of numbers, at equal shares of the background; fewer where
        quantiles coincide. 4 are the package's quartiles.
    weights : {"frequency", "uniform"}
        How often each bin is drawn.
    law : "tabular" or LimeLaw
        Bins of the background; or a law of :mod:`propopt.lime`, which has bins of its
        own: then all other settings but ``units`` and ``kernel_width`` are refused.
    units : {"output", "gradient"}
        β_j, a difference of outputs; or β_j / v_j.
    background : array or DataFrame (B, D), optional
        Where the bins come from; by default X itself.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, the function is no sum of products, or the
        background has other columns than X.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.arange(8.0)[:, None] * [1.0, 0.0]
    >>> tree = DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 3)
    >>> lime = po.explainers.ExactLime()
    >>> lime.explain(po.wrap(tree), X[[0, 7]]).details["alpha"].shape
    (2, 2)
    """

    method: ClassVar[str] = "exact_lime"

    kernel_width: float | None = None
    n_bins: int = 4
    weights: BinWeights = "frequency"
    law: Literal["tabular"] | LimeLaw = "tabular"
    units: PackageUnits = "output"
    background: Array | pd.DataFrame | None = None

    def __post_init__(self) -> None:
        if self.kernel_width is not None:
            read_positive(self.kernel_width, "kernel_width")
        if read_count(self.n_bins, "n_bins") < 2:
            raise InvalidInput("n_bins: expected at least 2: one bin has no contrast")
        for name, options in [("weights", BinWeights), ("units", PackageUnits)]:
            if getattr(self, name) not in get_args(options):
                raise InvalidInput(
                    f"{name}: expected one of {', '.join(get_args(options))}, "
                    f"got {getattr(self, name)!r}"
                )
        self._check_law()
        if self.background is not None:
            object.__setattr__(self, "background", checked_background(self.background))

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings as plain values; a law by its name and its kernel width."""
        law = self.law
        told = super().parameters
        if isinstance(law, LimeLaw):
            told |= {
                "law": law.method,
                "kernel_width": self._with_width(law).kernel_width,
            }
        return told

    def law_for(self, request: Request) -> LimeLaw:
        """The law of LIME's samples, with the kernel width of the settings."""
        if isinstance(self.law, LimeLaw):
            return self._with_width(self.law)
        own = self.background
        rows = request.points if own is None else same_columns(own, request)
        return law_of_rows(rows, request, self.n_bins, self.weights, self.kernel_width)

    def _findings(self, request: Request) -> Findings:
        law = self.law_for(request)
        function = request.function.products
        if isinstance(function, NoProducts):
            raise InvalidInput(f"exact_lime: {function.reason}")
        values = request.value(request.points)
        _check_read(function, request, values)
        limits = ExactLimits(function, law).of(request.points)
        request.advance(len(values))
        details = _details(limits, values, law, request)
        if self.units == "output":
            return Findings(attributions=limits.coefficients, details=details)
        W, more = _per_unit(limits.coefficients, law, request)
        return Findings(attributions=W, details={**details, **more})

    def _with_width(self, law: LimeLaw) -> LimeLaw:
        width = self.kernel_width
        return law if width is None else law.with_width(width)

    def _check_law(self) -> None:
        if self.law == "tabular":
            return
        if not isinstance(self.law, LimeLaw):
            raise InvalidInput(
                f"law: expected 'tabular' or a law of po.lime, got {self.law!r}"
            )
        if (self.n_bins, self.weights) != (
            4,
            "frequency",
        ) or self.background is not None:
            raise InvalidInput(
                "law: a law has bins of its own; leave n_bins, weights and background "
                "out"
            )


def _check_read(function: SumOfProducts, request: Request, values: Values) -> None:
    """Refuse a sum of products that is not what the function answers at the rows."""
    errors = np.abs(function.value(request.points) - values)
    worst = float((errors / np.maximum(1.0, np.abs(values))).max())
    if worst > function.tolerance:
        raise InvalidInput(
            f"exact_lime: {request.function!r} was read as a sum of products, which "
            f"differs from its answer by {worst:.2g} of max(1, |f|)"
        )


def _details(
    limits: Limits, values: Values, law: LimeLaw, request: Request
) -> dict[str, Array]:
    """What is known of the surrogates."""
    widths = law.widths(request.points)
    squared = [  # log E π² of each column: π² is the kernel of the width ν / √2
        column.tilt(x, widths / np.sqrt(2.0)).log_weight
        for column, x in zip(law.columns, request.points.T, strict=True)
    ]
    return {
        "intercept": limits.intercept,
        "local_gap": values - limits.at_row,
        "alpha": limits.alpha,
        "mean_weight": np.exp(limits.log_weight),
        "effective_share": np.exp(2.0 * limits.log_weight - np.sum(squared, axis=0)),
    }


def _per_unit(
    coefficients: Attributions, law: LimeLaw, request: Request
) -> tuple[Attributions, dict[str, Array]]:
    """β_j / v_j of numbers, and what they were divided by."""
    steps = bit_steps(law, request.points)
    size = np.nanmax(np.abs(request.points), axis=0, initial=0.0)
    seen = np.abs(steps) > LEAST_STEP * size  # False of NaN
    steps = np.where(request.fixed, 1.0, np.where(seen, steps, 0.0))
    slopes: Attributions = np.zeros(steps.shape)
    np.divide(coefficients, steps, out=slopes, where=steps != 0.0)
    undefined = (steps == 0.0).sum(axis=1).astype(float)
    return slopes, {"steps": steps, "undefined": undefined}

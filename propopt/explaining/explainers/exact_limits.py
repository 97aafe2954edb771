"""Tabular LIME without sampling noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, quotient
from propopt.base.checks import read_count, read_option, read_positive
from propopt.base.errors import EstimatedWarning, InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers.baseline import (
    Baseline,
    Findings,
    PackageUnits,
    Request,
    effect_of_the_word,
)
from propopt.explaining.explainers.shapley_values import (
    checked_background,
    same_columns,
)
from propopt.functions.texts import DocumentFunction
from propopt.lime.exact_limits import Limits, bit_steps, effective_share
from propopt.lime.explaining import explain_documents
from propopt.lime.laws.binned_columns import BinWeights
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.named import LimeLawName, checked_law, law_named
from propopt.lime.sampled_limits import (
    LimeSubject,
    checked_products,
    limits_or_estimates,
)
from propopt.lime.text.sampled_words import TextSubject
from propopt.lime.text.word_limits import TextLaw
from propopt.proofs.optimum import Parameter


LEAST_STEP: Final = 0.02
"""Least |v_j|, relative to the distance of the outermost bins, that is divided by."""


def findings_of_limits(
    limits: Limits, subject: LimeSubject, request: Request, units: PackageUnits
) -> Findings:
    """The findings for limits, in the requested units, with details."""
    values = subject.function.value_at(subject.points, subject.labels)
    law = subject.law
    errors = limits.standard_errors
    details = {
        "intercept": limits.intercept,
        "local_gap": values - limits.at_row,
        "alpha": limits.alpha,
        "mean_weight": np.exp(limits.log_weight),
        "effective_share": effective_share(law, subject.points, limits.log_weight),
    }
    if units == "output":
        return Findings(
            attributions=limits.coefficients,
            standard_errors=errors,
            details=details,
        )
    raw, spans = bit_steps(law, request.points)
    observed = np.abs(raw) > LEAST_STEP * spans  # False of NaN
    # v_j of numbers, 0 where they are too short; 1 of what is no number
    steps = np.where(request.fixed, 1.0, np.where(observed, raw, 0.0))

    def per_step(coefficients: Array, steps: Array) -> Array:
        return quotient(coefficients, steps, where=steps != 0.0)

    undefined = (steps == 0.0).sum(axis=1).astype(float)
    return Findings(
        attributions=per_step(limits.coefficients, steps),
        standard_errors=None if errors is None else per_step(errors, abs(steps)),
        details={**details, "steps": steps, "undefined": undefined},
    )


@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class ExactLime(Baseline):
    """Coefficients of tabular LIME for infinitely many samples, exactly.

    .. math::

        β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0],

    where z_j says whether column j is in the bin of the row, and Q is the law of LIME's
    samples times their weights (after Garreau and von Luxburg 2020). It is what
    :class:`LimePackage` scatters around: no seed and no noise, where the function is a
    sum of products (``function.products``), as trees and sums of trees are, linear and
    additive functions, and gaussian kernel machines. Of other functions they are
    estimated by least squares on ``n_samples`` draws of Q around each row, with
    ``standard_errors``, and a warning says why. For tables, noise and diagnoses of such
    coefficients see :func:`propopt.lime.limits`.

    With ``units="gradient"`` the coefficient of a number is divided by the distance
    that the column moves where the bit turns on,

    .. math::

        β_j / v_j, v_j = E_Q[x_j | z_j = 1] − E_Q[x_j | z_j = 0],

    which of a linear function is its slope, and so comparable with gradients. Where the
    mean of a bin is near that of the others v_j is near 0: there LIME does not see the
    feature (β_j vanishes with v_j if f is linear), and where f is curved the quotient
    is far larger than any slope. It is therefore undefined, set to 0 and counted where
    |v_j| is no more than 2 % of the distance between the means of the outermost bins.
    Coefficients of categories, and of numbers that are missing in the row, stay
    differences of outputs, as gradients have them. Where others of the column are
    missing, β_j has their part of the difference in it, and v_j has not.

    ``details`` has, of each row:

    =================== ======= ======================================================
    ``intercept``       (N,)    β_0
    ``local_gap``       (N,)    f(x) less the surrogate at the row, Σ β
    ``alpha``           (N, D)  Q(z_j = 1)
    ``mean_weight``     (N,)    C, the mean weight of a sample
    ``effective_share`` (N,)    of n samples this share counts: C² / E π²
    ``steps``           (N, D)  with ``units="gradient"``: v_j, 1 where the
                                coefficient stays as it is
    ``undefined``       (N,)    with ``units="gradient"``: how many v_j are too
                                short; they are 0, and so are attributions
    =================== ======= ======================================================

    Parameters
    ----------
    kernel_width : float or None
        ν; None is the package's 0.75 √D.
    n_bins : int
        Of each column of numbers, at equal shares of the background; fewer where
        quantiles coincide. 4 are the package's quartiles.
    weights : {"frequency", "uniform"}
        Whether bins are drawn as often as in the background, or all alike.
    law : "tabular", "gaussian", another name, LimeLaw or TextLaw
        Of documents a TextLaw, which deletes words. Of tables
        that of the package, bins drawn and weighted by bits; normal numbers weighted by
        their distance; one that another package adds (an entry point of the group
        ``propopt.laws``); or a law of :mod:`propopt.lime`, which has bins of its own,
        so that ``n_bins``, ``weights`` and ``data`` have to be left out.
    units : {"output", "gradient"}
        β_j, a difference of outputs; or β_j / v_j.
    n_samples : int
        Draws around each row where coefficients have to be estimated, to begin with.
    precision, max_evaluations : float and int, optional
        Of what has to be estimated, see :func:`propopt.lime.limits`.
    data : array or DataFrame (B, D), optional
        Where the bins come from; by default X itself.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, or the background has other columns than X.

    Warns
    -----
    EstimatedWarning
        If coefficients are estimated, with the reason.

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
    law: LimeLawName | str | LimeLaw | TextLaw = "tabular"
    units: PackageUnits = "output"
    n_samples: int = 5000
    precision: float | None = None
    max_evaluations: int | None = None
    data: Array | pd.DataFrame | None = None

    def __post_init__(self) -> None:
        if self.kernel_width is not None:
            read_positive(self.kernel_width, "kernel_width")
        if read_count(self.n_bins, "n_bins") < 2:
            raise InvalidInput(
                "n_bins: expected at least 2, as bins are compared, got 1"
            )
        read_option(self.weights, BinWeights, "weights")
        read_option(self.units, PackageUnits, "units")
        read_count(self.n_samples, "n_samples")
        self._check_law()
        if self.data is not None:
            object.__setattr__(self, "data", checked_background(self.data))

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings as plain values; the sampling law by name and kernel width."""
        law = self.law
        if isinstance(law, TextLaw):
            settings = {"bandwidth": law.bandwidth, "n_samples": self.n_samples}
            return {"law": "TextLaw", **settings}
        if isinstance(law, LimeLaw):
            return super().parameters | {
                "law": type(law).__name__,
                "kernel_width": law.with_width(self.kernel_width).kernel_width,
            }
        return super().parameters

    def _findings(self, request: Request) -> Findings:
        subject, limits = limits_or_estimates(self._subject(request))
        if subject.exact is None:
            warnings.warn(
                f"exact_lime: coefficients are estimated from {limits.n_draws:,} draws "
                f"around each row, as {subject.reason}",
                EstimatedWarning,
                stacklevel=3,
            )
        request.advance(len(request.points))
        return findings_of_limits(limits, subject, request, self.units)

    def _subject(self, request: Request) -> LimeSubject:
        """The function, the law and the rows of a request."""
        function = request.function
        points = request.points
        background = self.data
        rows = points if background is None else same_columns(background, request)
        if isinstance(self.law, LimeLaw):
            law = self.law.with_width(self.kernel_width)
        elif isinstance(self.law, TextLaw):
            raise InvalidInput(
                "law: a TextLaw deletes words of documents, and X is a table"
            )
        else:
            law = law_named(
                self.law,
                rows if function.schema is None else function.schema.decode(rows),
                function.schema,
                n_bins=self.n_bins,
                weights=self.weights,
                kernel_width=self.kernel_width,
            )
        return LimeSubject(
            function=function,
            law=law.aligned(request.labels, points.shape[1]),
            products=checked_products(function, rows, points, request.labels),
            points=points,
            labels=request.labels,
            reference=rows,
            draws=self._draws(request),
        )

    def _draws(self, request: Request) -> DrawPlan:
        seed = int(request.rng.integers(2**32))
        return DrawPlan(self.n_samples, seed, self.precision, self.max_evaluations)

    def _texts_refusal(self) -> str | None:
        if isinstance(self.law, TextLaw):
            return None
        return (
            "words of documents are deleted; give law=po.lime.TextLaw() in place of a "
            "law of tables"
        )

    def _words(self, request: Request) -> Findings:
        """Limits of LIME on texts, estimated if they are not exact."""
        at = request.function
        law = self.law
        assert isinstance(law, TextLaw), "see _texts_refusal"
        assert isinstance(at, DocumentFunction), "see Baseline"
        short = effect_of_the_word(request)
        if short is not None:
            return short
        subject = TextSubject(
            function=at.function,
            law=law,
            documents=(at.document,),
            draws=self._draws(request),
        )
        row = explain_documents(subject, progress=False).records[0]
        if not row.is_exact:
            warnings.warn(
                f"exact_lime: coefficients are estimated: {row.reason}",
                EstimatedWarning,
                stacklevel=2,
            )
        return Findings(
            attributions=np.asarray(row.coefficients)[None],
            standard_errors=np.asarray(row.errors)[None],
            details={
                "intercept": np.array([row.intercept]),
                "local_gap": np.array([row.value - row.at_row]),
            },
        )

    def _check_law(self) -> None:
        if isinstance(self.law, TextLaw):
            if (self.kernel_width, self.units) != (None, "output"):
                raise InvalidInput(
                    "kernel_width, units: a TextLaw has a bandwidth, and coefficients "
                    "of words are in units of the output"
                )
        elif not isinstance(self.law, LimeLaw):
            checked_law(self.law, self.n_bins, self.weights, self.kernel_width)
            return
        chosen = (self.n_bins, self.weights) != (4, "frequency")
        if chosen or self.data is not None:
            raise InvalidInput(
                "law: the given law has its own bins; leave n_bins, weights and data "
                "out"
            )

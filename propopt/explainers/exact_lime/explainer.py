"""Tabular LIME without sampling noise: what its coefficients tend to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, get_args

import pandas as pd

from propopt._typing import Array, Points
from propopt.checks import read_count, read_positive
from propopt.errors import InvalidInput
from propopt.explainers.background import checked_background, same_columns
from propopt.explainers.base import Baseline, Findings, PackageUnits
from propopt.explainers.exact_lime.family import family_of_widths
from propopt.explainers.exact_lime.units import found_limits, warn_of_estimates
from propopt.explainers.request import Request
from propopt.explainers.texts.each import WordsFound
from propopt.explainers.texts.limits import limits_of_words
from propopt.functions.text import DocumentFunction
from propopt.lime.explanation.reading import checked_products
from propopt.lime.explanation.subject import LimeSubject, limits_or_estimates
from propopt.lime.laws import LimeLaw
from propopt.lime.laws.from_data import BinWeights
from propopt.lime.laws.named import LimeLawName, check_law_name, law_named
from propopt.lime.text.law import TextLaw
from propopt.results.explanation import Explanation, Parameter
from propopt.structures.products import NoProducts
from propopt.tables.schema import TableSchema


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactLime(Baseline):
    """Coefficients of tabular LIME for infinitely many samples, exactly.

    β_j = E_Q[f | z_j = 1] − E_Q[f | z_j = 0],

    where z_j says whether column j is in the bin of the row, and Q is the law of LIME's
    samples times their weights (after Garreau and von Luxburg 2020). It is what
    :class:`LimePackage` scatters around: no seed, no noise, and 50 kernel widths cost
    little more than one, where the function is a sum of products
    (``function.products``), as trees and sums of trees are, linear and additive
    functions, and gaussian kernel machines. Of other functions the coefficients are
    estimated by least squares on ``n_samples`` draws of Q around each row, with
    ``standard_errors``, and a warning says why. For tables, noise and diagnoses of such
    coefficients see :func:`propopt.lime.limits`.

    With ``units="gradient"`` the coefficient of a number is divided by the distance
    that the column moves where the bit turns on,

    β_j / v_j,  v_j = E_Q[x_j | z_j = 1] − E_Q[x_j | z_j = 0],

    which of a linear function is its slope, and so comparable with gradients. Where the
    mean of a bin is near that of the others v_j is near 0: there LIME does not see the
    feature (β_j vanishes with v_j if f is linear), and where f is curved the quotient
    is far larger than any slope. It is therefore undefined, set to 0 and counted where
    |v_j| is no more than 2 % of the distance between the means of the outermost bins.
    Coefficients of categories, and of numbers that are missing in the row, stay
    differences of outputs, as gradients have them. Where others of the column are
    missing, β_j has their part of the difference in it, and v_j has not.

    ============================ ======= =============================================
    ``details["intercept"]``     (N,)    β_0
    ``details["local_gap"]``     (N,)    f(x) less the surrogate at the row, Σ β
    ``details["alpha"]``         (N, D)  Q(z_j = 1)
    ``details["mean_weight"]``   (N,)    C, the mean weight of a sample
    ``details["effective_share"]`` (N,)  of n samples this share counts: C² / E π²
    ``details["steps"]``         (N, D)  with ``units="gradient"``: v_j, 1 where the
                                         coefficient stays as it is
    ``details["undefined"]``     (N,)    with ``units="gradient"``: how many v_j are too
                                         short; they are 0, and so are attributions
    ============================ ======= =============================================

    Parameters
    ----------
    kernel_width : float or None
        ν; None is the package's 0.75 √D.
    n_bins : int
        Of each column of numbers, at equal shares of the background; fewer where
        quantiles coincide. 4 are the package's quartiles.
    weights : {"frequency", "uniform"}
        Whether bins are drawn as often as in the background, or all alike.
    law : "tabular", "gaussian", LimeLaw or TextLaw
        Of documents a TextLaw, which deletes words. Of tables
        That of the package, bins drawn and weighted by bits; normal numbers weighted by
        their distance; or a law of :mod:`propopt.lime`, which has bins of its own, so
        that ``n_bins``, ``weights`` and ``background`` have to be left out.
    units : {"output", "gradient"}
        β_j, a difference of outputs; or β_j / v_j.
    n_samples : int
        Draws around each row where coefficients have to be estimated.
    background : array or DataFrame (B, D), optional
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
    law: LimeLawName | LimeLaw | TextLaw = "tabular"
    units: PackageUnits = "output"
    n_samples: int = 5000
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
        read_count(self.n_samples, "n_samples")
        self._check_law()
        if self.background is not None:
            object.__setattr__(self, "background", checked_background(self.background))

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings as plain values; a law by its name and its kernel width."""
        law = self.law
        told = super().parameters
        if isinstance(law, TextLaw):
            told = {
                "law": "TextLaw",
                "bandwidth": law.bandwidth,
                "n_samples": self.n_samples,
            }
        if isinstance(law, LimeLaw):
            told |= {
                "law": law.method,
                "kernel_width": self._with_width(law).kernel_width,
            }
        return told

    at_widths = family_of_widths

    def law_of(self, points: Points, schema: TableSchema | None) -> LimeLaw:
        """The law of LIME's samples, its bins those of points (B, D)."""
        if isinstance(self.law, LimeLaw):
            return self._with_width(self.law)
        if isinstance(self.law, TextLaw):
            raise InvalidInput(
                "law: a TextLaw deletes words of documents, and X is a table"
            )
        return law_named(
            self.law,
            points if schema is None else schema.decode(points),
            schema,
            n_bins=self.n_bins,
            weights=self.weights,
            kernel_width=self.kernel_width,
        )

    def _expected(self, request: Request) -> int:
        at = request.function
        if isinstance(at, DocumentFunction) and at.function.is_read:
            return 0  # reading a document is as much work as its limits
        if isinstance(
            request.function.products_in(request.points.shape[1]), NoProducts
        ):
            return len(request.points) * self.n_samples
        return 0

    def _findings(self, request: Request) -> Findings:
        subject, limits = limits_or_estimates(self.subject_of(request))
        if subject.exact is None:
            warn_of_estimates(subject)
        request.advance(len(request.points))
        return found_limits(subject, limits, request, self.units)

    def explanation_at(
        self, width: float, request: Request, found: Findings, rows: int, seconds: float
    ) -> Explanation:
        """What was found at one width of many, in so many rows and seconds."""
        return replace(
            self._explanation(request, found, rows, seconds),
            parameters={**self.parameters, "kernel_width": width},
        )

    def subject_of(self, request: Request) -> LimeSubject:
        """The function, the law and the rows of a request."""
        function, points, own = request.function, request.points, self.background
        rows = points if own is None else same_columns(own, request)
        law = self.law_of(rows, function.schema)
        return LimeSubject(
            function=function,
            law=law.aligned(request.labels, points.shape[1]),
            products=checked_products(function, rows, points, request.labels),
            points=points,
            labels=request.labels,
            reference=rows,
            has_table=own is not None,
            n_draws=self.n_samples,
            seed=int(request.rng.integers(2**32)),
        )

    def _with_width(self, law: LimeLaw) -> LimeLaw:
        width = self.kernel_width
        return law if width is None else law.with_width(width)

    def _texts_refusal(self) -> str | None:
        if isinstance(self.law, TextLaw):
            return None
        return (
            "words of documents are deleted; give law=po.lime.TextLaw() in place of a "
            "law of tables"
        )

    def _words(self, request: Request) -> WordsFound:
        """What LIME on texts tends to, in units of the output."""
        assert isinstance(self.law, TextLaw), "see _texts_refusal"
        return limits_of_words(request, self.law, self.n_samples)

    def _check_law(self) -> None:
        if isinstance(self.law, TextLaw):
            if (self.kernel_width, self.units) != (None, "output"):
                raise InvalidInput(
                    "kernel_width, units: a TextLaw has a bandwidth, and coefficients "
                    "of words are in units of the output"
                )
        elif not isinstance(self.law, LimeLaw):
            check_law_name(self.law, self.weights)
            return
        chosen = (self.n_bins, self.weights) != (4, "frequency")
        if chosen or self.background is not None:
            raise InvalidInput(
                "law: a law has bins of its own; leave n_bins, weights and background "
                "out"
            )

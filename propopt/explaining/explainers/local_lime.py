"""LIME: a local linear fit at each point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from propopt.base.arrays import Array, Points, Values, quotient
from propopt.base.checks import read_count, read_nonnegative, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget, require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers.baseline import (
    Baseline,
    Findings,
    Request,
    effect_of_the_word,
)
from propopt.functions.texts import DocumentFunction
from propopt.laws.perturbations import Perturbations, noisy_neighbourhoods
from propopt.laws.regressions import Neighbourhood, Regressions
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.sampled_limits import around_rows
from propopt.lime.text.word_limits import TextLaw
from propopt.losses.faithfulness import Units
from propopt.proofs.optimum import Parameter
from propopt.tables.frames import listed


def local_fit(
    neighbourhood: Neighbourhood,
    values: Array,
    first: int,
    ridge: float,
    fit_intercept: bool,
) -> dict[str, Array]:
    """Minimise over w, b:  Σ_s π_s (f(x̃_s) − b − wᵀz_s)² + ridge ‖w‖².

    Slopes and details for consecutive points from ``first`` on; values (n, S). Without
    ``fit_intercept`` b is 0.
    """
    weights = neighbourhood.weights
    n_samples = values.shape[1]
    if weights is None:
        weights = np.ones(neighbourhood.samples.shape[:-1])
    nothing = ~weights.any(axis=1)
    if nothing.any():
        raise InvalidInput(
            f"lime at point {first + int(nothing.argmax())}: the weights of all "
            f"{n_samples} samples round to zero; use a larger kernel_width or bandwidth"
        )
    centre = np.zeros_like(neighbourhood.origin)
    mean = np.zeros(len(neighbourhood.origin))
    if fit_intercept:
        # It takes up the weighted means, so the fit needs ε alone: x̃ − mean x̃ would
        # lose the digits of a small ε in those of x.
        shares = weights / weights.sum(axis=1, keepdims=True)
        centre = np.einsum("ns,nsd->nd", shares, neighbourhood.regressors)
        mean = np.einsum("ns,ns->n", shares, values)
        design = neighbourhood.regressors - centre[:, None]
    else:
        design = neighbourhood.origin[:, None] + neighbourhood.regressors
    design /= neighbourhood.units[:, None]
    targets = values - mean[:, None] if fit_intercept else values
    root_ridge = math.sqrt(ridge) / neighbourhood.units + neighbourhood.is_constant
    fits = Regressions(design, targets, neighbourhood.weights, root_ridge)
    lost = fits.undetermined
    if lost.any():
        n = int(lost.argmax())
        raise InvalidInput(
            f"lime at point {first + n}: {n_samples} samples "
            f"({_kish(weights[n : n + 1])[0]:.3g} effective) are too few for the "
            "linear fit; use a larger scale, kernel_width or n_samples, or ridge > 0"
        )
    residuals = fits.residuals
    slopes = fits.slopes / neighbourhood.units
    intercept = mean - np.einsum("nd,nd->n", neighbourhood.origin + centre, slopes)
    return {
        "slopes": slopes * neighbourhood.contrast,
        "intercept": intercept if fit_intercept else mean,
        "r2": _r2(values, residuals, weights),
        "effective_samples": _kish(weights),
        "standard_errors": fits.errors / neighbourhood.units * neighbourhood.contrast,
    }


def _r2(values: Array, residuals: Array, weights: Array) -> Values:
    """1 − Σπe² / Σπ(f − f̄)²; 1 where f varies by no more than rounding."""
    mean = np.average(values, axis=1, weights=weights)
    spread = (weights * (values - mean[:, None]) ** 2).sum(axis=1)
    rounding = (weights * (16 * np.finfo(float).eps * values) ** 2).sum(axis=1)
    left = (weights * residuals**2).sum(axis=1)
    return 1 - quotient(left, spread, where=spread > rounding)


def _kish(weights: Array) -> Values:
    relative = weights / weights.max(axis=1, keepdims=True)
    return relative.sum(axis=1) ** 2 / (relative**2).sum(axis=1)


def around_texts(
    law: TextLaw,
    n_samples: int,  # S
    first_row: bool,  # whether the text itself is the first of them, with weight one
    points: Points,
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Neighbourhood]]:
    """Samples of a text for each row of ones (n, d), with their bits as regressors."""
    for n, row in enumerate(points):
        bits, weights = law.draw(len(row), n_samples, rng)
        if first_row:
            bits[0] = True
            weights[0] = 1.0
        regressors = bits.astype(np.float64)[None]
        zeros = np.zeros((1, len(row)))
        ones = np.ones((1, len(row)))
        neighbourhood = Neighbourhood(
            regressors, regressors, weights[None], zeros, ones, ones
        )
        yield slice(n, n + 1), neighbourhood


FITTED_TOGETHER: Final = Budget(2**19)
"""Regressors of one call of LAPACK, few enough to stay in a processor's cache."""


@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Lime(Baseline):
    """Slopes of a weighted least-squares fit of f around each point.

    minimise over w, b:  Σ_s π_s (f(x̃_s) − b − wᵀx̃_s)² + ridge ‖w‖²,
    x̃_s = x_n + ε_s,  ε_s ~ N(0, δ² I),  π_s = exp(−‖ε_s‖² / (2 kernel_width²))

    (Tadesse et al. 2024, Eq. 16 and 18; Ribeiro et al. 2016). The paper's model has no
    intercept: ``fit_intercept=False`` with b = 0 reproduces it. With an intercept and
    no kernel, the fit tends to SmoothGrad of the same scale as S
    grows (Stein's lemma). For the ``lime`` package see :class:`LimePackage`.

    Noise is added to numbers alone: for categories and missing numbers give a ``law``.

    With a ``law`` of :mod:`propopt.lime` in place of a ``scale``, its samples are
    drawn, weighted by it, and f is regressed on their bits: tabular LIME, of which
    ``TabularLaw(...)`` with ``ridge=1, first_row=True`` is what the ``lime`` package
    does. Slopes are then differences of outputs; they tend to what
    :func:`propopt.lime.limits` says without samples.

    The result has ``standard_errors`` (N, D), the Monte-Carlo standard error of each
    slope (sandwich), and these ``details``:

    ===================== ======= ====================================================
    ``intercept``         (N,)    b; zero where none was fitted
    ``r2``                (N,)    weighted R² of the fit, about the weighted mean of f;
                                  1 where f is constant on the samples
    ``effective_samples`` (N,)    Kish: (Σπ)² / Σπ²
    ===================== ======= ====================================================

    Parameters
    ----------
    scale : float or None
        δ > 0, in the units of the features; None with a law.
    n_samples : int
        S draws per point; at least as many as unknowns, unless ``ridge`` > 0.
    kernel_width : float or None
        None: all weights are one; with a law, the width of the law.
    ridge : float
        Penalty on the slopes, not on the intercept; it competes with Σ_s π_s, which
        grows with S.
    fit_intercept : bool
        Whether b is fitted.
    relative : bool
        Whether ``scale`` and ``kernel_width`` are in units of the standard deviations
        of the function's schema, see :func:`propopt.wrap` and its ``data``.
    law : LimeLaw, TextLaw or None
        How samples are drawn, coded as bits and weighted, in place of ``scale``. For
        documents a TextLaw: words are deleted, and f is regressed on the bits of
        retained words.
    first_row : bool
        With a law: whether the point itself is the first of the S samples.

    Raises
    ------
    InvalidInput
        If a setting is outside its range, if not exactly one of ``scale`` and ``law``
        is given, if noise is added to categories or missing numbers, or if the samples
        do not determine the fit.
    Refused
        If the samples of one point do not fit into memory.

    Examples
    --------
    >>> from propopt.functions import Power
    >>> lime = Lime(scale=0.1, n_samples=500).explain(Power(2), [[1.0, -3.0]])
    >>> lime.attributions.round(1)
    array([[ 2., -6.]])
    >>> bool(lime.details["r2"] > 0.99)
    True

    >>> import numpy as np, propopt as po
    >>> X = np.random.default_rng(0).uniform(size=(400, 2))
    >>> lime = Lime(law=po.lime.TabularLaw.from_data(X), ridge=1.0, first_row=True)
    >>> lime.explain(Power(1), [[0.9, 0.1]]).attributions.round(1)
    array([[ 0.5, -0.5]])
    """

    method: ClassVar[str] = "lime"

    scale: float | None = None
    n_samples: int = 1000
    kernel_width: float | None = None
    ridge: float = 0.0
    fit_intercept: bool = True
    relative: bool = False
    law: LimeLaw | TextLaw | None = None
    first_row: bool = False

    def __post_init__(self) -> None:
        if (self.scale is None) == (self.law is None):
            raise InvalidInput("lime: give either scale or law, and not both")
        if self.kernel_width is not None:
            read_positive(self.kernel_width, "kernel_width")
        read_nonnegative(self.ridge, "ridge")
        if self.law is not None:
            self._check_law(self.law)
            return
        self._noise()
        if self.first_row:
            raise InvalidInput("first_row: only with a law")

    @property
    def units(self) -> Units:
        """The units: slopes, or differences of outputs for binary features."""
        return "gradient" if self.law is None else "output"

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings in use, as plain values; the sampling law is given in words."""
        settings = super().parameters
        if self.law is None:
            left_out = {"law", "first_row"}
        else:
            left_out = {"scale", "relative", "kernel_width"}
            if isinstance(self.law, TextLaw):
                settings |= {"law": "TextLaw", "bandwidth": self.law.bandwidth}
            else:
                settings["law"] = repr(self.law.with_width(self.kernel_width))
        return {name: settings[name] for name in settings if name not in left_out}

    def _findings(self, request: Request) -> Findings:
        self._check_size(request.points.shape[1])
        blocks = []
        for rows, neighbourhood in self._neighbourhoods(request):
            values = request.value(neighbourhood.samples)
            for part, part_of_rows in neighbourhood.parts(FITTED_TOGETHER):
                first = rows.start + part.start
                blocks.append(
                    local_fit(
                        part_of_rows,
                        values[part],
                        first,
                        self.ridge,
                        self.fit_intercept,
                    )
                )
            request.advance(len(neighbourhood.samples))
        joined = {
            name: np.concatenate([block[name] for block in blocks])
            for name in blocks[0]
        }
        return Findings(
            attributions=joined.pop("slopes"),
            standard_errors=joined.pop("standard_errors"),
            details=joined,
        )

    def _neighbourhoods(
        self, request: Request
    ) -> Iterator[tuple[slice, Neighbourhood]]:
        """Samples around consecutive points, in blocks that fit into memory.

        What is drawn around a point depends on the seed and on its position, neither
        on later points nor on the size of blocks.
        """
        points = request.points
        rng = request.rng
        if isinstance(self.law, TextLaw):
            if not isinstance(request.function, DocumentFunction):
                raise InvalidInput(
                    "law: a TextLaw deletes words of documents, and X is a table"
                )
            return around_texts(self.law, self.n_samples, self.first_row, points, rng)
        if self.law is not None:
            law = self.law.with_width(self.kernel_width)
            law = law.aligned(request.labels, points.shape[1])
            return around_rows(law, self.n_samples, self.first_row, points, rng)
        fixed = np.flatnonzero(request.fixed.any(axis=0))
        if len(fixed) > 0:
            names = request.labels.feature_names(points.shape[1])
            raise InvalidInput(
                "scale: noise is added to numbers, and X has categories or missing "
                f"numbers in {listed([names[j] for j in fixed])}; give "
                "law=po.lime.TabularLaw.from_data(X, function.schema) in its place"
            )
        scales = request.feature_units(self.relative)
        return noisy_neighbourhoods(
            self._noise(), self.kernel_width, scales, points, rng
        )

    def _check_size(self, n_features: int) -> None:
        unknowns = n_features + self.fit_intercept
        if self.ridge == 0 and self.n_samples < unknowns:
            raise InvalidInput(
                f"n_samples: {self.n_samples} samples cannot determine {unknowns} "
                f"unknowns; expected n_samples >= {unknowns}, or ridge > 0"
            )
        # Draws, copies, design, weighted system, its factorisation, influences.
        n_bytes = 6.0 * 8 * self.n_samples * n_features
        label = f"a fit of {self.n_samples} samples x {n_features} features"
        require_memory(n_bytes, label, "use fewer samples, or SmoothGrad")

    def _noise(self) -> Perturbations:
        return Perturbations(
            scale=0.0 if self.scale is None else self.scale,
            n_samples=self.n_samples,
        )

    def _texts_refusal(self) -> str | None:
        if isinstance(self.law, TextLaw):
            return None
        return (
            "words of documents are deleted; give law=po.lime.TextLaw() in place of a "
            "scale or a law of tables"
        )

    def _words(self, request: Request) -> Findings:
        return effect_of_the_word(request) or super()._words(request)

    def _check_law(self, law: LimeLaw | TextLaw) -> None:
        if not isinstance(law, LimeLaw | TextLaw):
            raise InvalidInput(
                "law: expected a law of propopt.lime, such as TabularLaw, got "
                f"{type(law).__name__}"
            )
        if isinstance(law, TextLaw) and self.kernel_width is not None:
            raise InvalidInput(
                "kernel_width: a TextLaw takes a bandwidth instead, which is the "
                "kernel width of the package lime divided by 100; give "
                "TextLaw(bandwidth)"
            )
        if read_count(self.n_samples, "n_samples") <= self.first_row:
            raise InvalidInput(
                "n_samples: expected at least 2, the point itself and one more"
            )
        if self.relative:
            raise InvalidInput("relative: only with a scale")

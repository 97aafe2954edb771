"""A column of normal numbers in bins, weighted by their distance from the row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy.special import log_ndtr, ndtri

from propopt._typing import Array, Positions, Truths, Values
from propopt.errors import InvalidInput
from propopt.lime.bins.rules import BinRule
from propopt.lime.bins.words import interval_words
from propopt.lime.laws.mixture import tilt_of_masses
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import Normals, Pieces
from propopt.structures.products.standard_normal import log_mass


@final
@dataclass(frozen=True, eq=False)
class NormalColumn:
    """V ~ N(μ, σ²), a bit for the bin of the row, and weights by distance from it.

    Bins are q⁻ ≤ V < q⁺. With the kernel exp(−(V − ξ)² / (2 (uν)²)) the weighted law is
    normal too, N(μ̃, σ̃²): with ω = (uν)² / ((uν)² + σ²)

    μ̃ = ω μ + (1 − ω) ξ,  σ̃² = ω σ²,  log c = ½ log ω − (ξ − μ)² / (2 ((uν)² + σ²))

    (Garreau and von Luxburg 2020, "Explaining the explainer", Section 7). A number may
    be missing; it has a bin of its own, and counts as far from all numbers as u.

    Parameters
    ----------
    mean, scale : float
        μ, and σ > 0.
    edges : array (B − 1,)
        Where bins end, increasing; each edge belongs to the bin above it.
    unit : float
        u > 0, in which distances are measured.
    missing : float
        The probability that a number is missing, < 1.
    """

    mean: float
    scale: float
    edges: Array
    unit: float = 1.0
    missing: float = 0.0

    @classmethod
    def of_rule(
        cls,
        mean: float,
        scale: float,
        rule: BinRule,
        unit: float = 1.0,
        missing: float = 0.0,
    ) -> NormalColumn:
        """Bins of the same mass 1/B under N(μ, σ²), unless edges are given."""
        edges = rule.edges
        if edges is None:
            edges = mean + scale * ndtri(np.arange(1, rule.n_bins) / rule.n_bins)
        return cls(mean, scale, edges, unit, missing)

    @cached_property
    def ends(self) -> Array:
        """All edges, and −∞ and ∞, (B + 1,)."""
        return np.concatenate([[-np.inf], self.edges, [np.inf]])

    @cached_property
    def bins(self) -> tuple[str, ...]:
        """The bins in words, and that of missing numbers if there are any."""
        numbers = interval_words(self.edges, below=False)
        return (*numbers, "missing") if self.missing > 0.0 else numbers

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,); B for a missing one.

        Raises
        ------
        InvalidInput
            If a value is missing, and samples never are.
        """
        absent = np.isnan(x)
        if self.missing == 0.0 and absent.any():
            raise InvalidInput(
                "X: a value is missing, and no sample of its column is; the data that "
                "the law was made of had none, or take a TabularLaw of data that has"
            )
        places = np.searchsorted(self.edges, x, side="right")
        return np.where(absent, len(self.edges) + 1, places)

    def distance(self, x: Values) -> Array:
        """|x − μ| / σ, (n,); NaN where a value is missing."""
        return np.asarray(np.abs(x - self.mean) / self.scale)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """Pieces of N(μ̃, σ̃²): left of the bin of the row, in it, right of it; missing.

        Around a missing number the law of numbers stays as it is, and the bit says
        whether a sample is missing too.
        """
        place, absent = self.place(x), np.isnan(x)
        low = np.where(absent, -np.inf, self.ends[place])
        high = np.where(absent, np.inf, self.ends[place + 1 - absent])
        near = self._near(
            np.where(absent, self.mean, x),
            np.where(absent, np.inf, widths * self.unit),
            low,
            high,
        )
        if self.missing == 0.0:
            return tilt_of_masses(*near)
        apart = -0.5 / widths**2
        log_missing = np.log(self.missing) + np.where(absent, 0.0, apart)
        numbers = np.log1p(-self.missing) + np.where(absent, apart, 0.0)
        return tilt_of_masses(
            _with_missing(near.pieces),
            np.vstack([near.log_masses + numbers, log_missing]),
            np.vstack([near.ones & ~absent, absent]),
        )

    def log_kernel(
        self, x: Array | float, values: Array, bits: Array, width: Array | float
    ) -> Array:
        """−(v − ξ)² / (2 (uν)²), with the distance u where one of both is missing."""
        del bits
        distance = (values - x) / self.unit
        absent = np.isnan(distance)
        if absent.any():
            one_only = np.isnan(values) ^ np.isnan(x)
            distance = np.where(absent, one_only, distance)
        return np.asarray(-0.5 * (distance / width) ** 2)

    def _near(self, x: Values, widths: Values, low: Array, high: Array) -> _Near:
        """The weighted law of numbers, cut at the ends of a bin."""
        ratio = (self.scale / widths) ** 2
        share = 1.0 / (1.0 + ratio)
        mean, sd = share * self.mean + (1.0 - share) * x, np.sqrt(share) * self.scale
        apart = (x - self.mean) ** 2 / (widths**2 + self.scale**2)
        log_weight = -0.5 * (np.log1p(ratio) + apart)
        lo, hi = (low - mean) / sd, (high - mean) / sd
        log_masses = np.stack([log_ndtr(lo), log_mass(lo, hi), log_ndtr(-hi)])
        # a side that is not there has no mass, and any ends
        starts = np.stack(
            [np.full(len(x), -np.inf), low, np.where(np.isinf(high), -np.inf, high)]
        )
        stops = np.stack(
            [np.where(np.isinf(low), np.inf, low), high, np.full(len(x), np.inf)]
        )
        means, sds = (np.broadcast_to(part, starts.shape) for part in (mean, sd))
        ones = np.broadcast_to(np.array([[False], [True], [False]]), starts.shape)
        pieces = Pieces.of_normals(Normals(means, sds, starts, stops))
        return _Near(pieces, log_masses + log_weight, ones)


class _Near(NamedTuple):
    """The law of numbers near rows: what :func:`tilt_of_masses` takes."""

    pieces: Pieces
    log_masses: Array
    ones: Truths


def _with_missing(pieces: Pieces) -> Pieces:
    """The pieces, and a missing number as one more."""
    row = np.full((1, pieces.mean.shape[1]), np.nan)
    parts = (pieces.mean, pieces.sd, pieces.low, pieces.high)
    return Pieces(
        np.append(pieces.single, True), *(np.vstack([part, row]) for part in parts)
    )

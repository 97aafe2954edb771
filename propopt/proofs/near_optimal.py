"""Signs and orders that hold in every near-optimal explanation.

A linear form of near-optimal explanations is bounded. For every V with an objective at
most β above that of W,

    |⟨ℓ, V − W⟩| ≤ √((β + e) ⟨ℓ, H⁻¹ℓ⟩) + min(d ‖ℓ‖, √(e ⟨ℓ, H⁻¹ℓ⟩)),

where H is half the Hessian of the squared losses, e the certified excess of W over the
optimum W* and d its certified distance. This follows from F(V) ≥ F* + ⟨V − W*, H (V −
W*)⟩, which holds with further convex losses too. With bounds F is the Lagrangian, which
is no larger than the objective where the bounds hold. With given row sums W v = t, H⁻¹
is the inverse on the remaining subspace (:mod:`propopt.proofs.hessian`).

For errors of an estimated target, block estimates Ĝ_b with mean Ḡ move the optimum of
squared losses by a H⁻¹(Ĝ_b − Ḡ). The spread of B such moves, over √B, is the standard
error of any linear form of W; t_{B−1}(0.975) of them give 95 % intervals.

For the order of the features of one row: the size of w_d exceeds that of w_e in every V
of a convex set around W if and only if both

    s_d v_d − s_e v_e > 0   and   s_d v_d + s_e v_e > 0

hold there, for the signs s of W: two linear forms with computable minima. For
the order of values there is one, v_d − v_e.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from propopt.base.arrays import Array, Attributions, Indices, Mask, quotient
from propopt.base.errors import InvalidInput
from propopt.losses import GradientMatching, Objective, Program
from propopt.proofs.hessian import (
    FeatureSumHessian,
    Hessian,
    QuadraticPart,
    ScaledHessian,
)
from propopt.proofs.optimum import Optimum
from propopt.proofs.sampling_error import DrawCovariance


# ---- Near-optimal sets: the range of linear forms


@final
@dataclass(frozen=True, eq=False)
class NearOptimal:
    """The set of all V with an objective at most β above W, for any β ≥ 0."""

    hessian: Hessian  # solves with H
    modulus: float  # a, the weight of gradient matching: H ≥ aI
    excess: float  # e
    distance: float  # d; infinite if not available

    @classmethod
    def around(cls, best: Optimum, program: Program) -> NearOptimal:
        """The near-optimal set around an optimum of the program."""
        certificate = best.certificate
        if certificate is None:
            raise InvalidInput(
                f"certain: expected an optimized explanation, got {best.method!r} "
                "without certificate; certified(objective) gives one"
            )
        # the Lagrangian weights all losses, bounded ones too; row sums stay constraints
        losses = (*program.losses, *(bound.loss for bound in program.limits))
        rates = np.array([best.rates.get(loss.name, 0.0) for loss in losses])
        # the modulus is of squared losses of W itself; the excess of F, and of the
        # Lagrangian F + Σ μ (loss − limit), over the minimum
        of_W = (x.is_direct and x.is_squared for x in losses)
        above = math.fsum(
            best.multipliers.get(name, 0.0) * (best.losses[name] - bound.limit)
            for bound in program.limits
            for name in [bound.loss.name]
        )
        value = certificate.value + max(above, 0.0)
        quadratic = QuadraticPart(Program(losses, program.row_sums, program.shape))
        return cls(
            quadratic.hessian(rates),
            math.fsum(compress(rates.tolist(), of_W)),
            max(value - certificate.lower_bound, 0.0),
            math.inf if certificate.distance is None else certificate.distance,
        )

    def of_sums(self, sums: Array) -> NearOptimal:
        """The set of all V Aᵀ, for sums A (K, D) of disjoint groups of features."""
        most = float(sums.sum(axis=1).max())  # ‖A‖²
        return NearOptimal(
            FeatureSumHessian(self.hessian, sums),
            self.modulus / most,
            self.excess,
            self.distance * math.sqrt(most),
        )

    def scaled(self, scales: Array) -> NearOptimal:
        """The set of all Φ + V S, for one scale s_d per column, (D,)."""
        most = float(scales.max(initial=0.0))
        if not most:
            return self
        return NearOptimal(
            ScaledHessian(self.hessian, scales),
            self.modulus / most**2,
            self.excess,
            self.distance * most,
        )

    def reach(self, beta: float, variances: Array, lengths: float = 1.0) -> Array:
        """The largest |⟨ℓ, V⟩ − ⟨ℓ, W⟩|, for ⟨ℓ, H⁻¹ℓ⟩ and ‖ℓ‖."""
        widths: Array = np.sqrt((beta + self.excess) * variances)
        return widths + self._slack(variances, lengths)

    def price(self, sizes: Array, variances: Array, lengths: float = 1.0) -> Array:
        """The smallest β for which ⟨ℓ, V⟩ can be zero; infinite if ℓ is fixed."""
        remaining = np.maximum(sizes - self._slack(variances, lengths), 0.0)
        never = np.where(remaining > 0.0, np.inf, 0.0)
        prices = quotient(remaining**2, variances, never)
        return np.maximum(prices - self.excess, 0.0)

    def _slack(self, variances: Array, lengths: float) -> Array:
        """The largest |⟨ℓ, W*⟩ − ⟨ℓ, W⟩|."""
        return np.minimum(self.distance * lengths, np.sqrt(self.excess * variances))


# ---- Attributions that count as zero


ZERO: Final = 1e-12
"""Attributions up to this share of the largest count as zero."""


# ---- Errors of attributions due to an estimated target


_LEVEL = 0.975


@final
@dataclass(frozen=True, eq=False)
class TargetHalfWidths:
    """Half-widths of 95 % intervals, for the target's error alone."""

    # (N, D): half-widths, which add up at most for pairs; or (B, N, D): moves of W with
    # blocks of the target, of mean zero, scaled by t_{B−1}(0.975)/√(B(B−1))
    numbers: Array

    def of_entries(self) -> Attributions:
        """Half-widths of single attributions, (N, D)."""
        if self.numbers.ndim == 2:
            return self.numbers
        squares = np.einsum("bnd,bnd->nd", self.numbers, self.numbers)
        return self._factor * np.sqrt(squares)

    def of_pairs(
        self, row: int, features: Indices, signs: Array
    ) -> tuple[Array, Array]:
        """Half-widths of s_d w_d − s_e w_e and s_d w_d + s_e w_e in one row, (d, d)."""
        values = self.numbers[..., row, features]
        if values.ndim == 1:
            totals = values[:, None] + values
            return totals, totals
        products = (values * signs).T @ (values * signs)
        values = np.diag(products)
        sums = values[:, None] + values
        differences = np.maximum(sums - 2.0 * products, 0.0)
        totals = np.maximum(sums + 2.0 * products, 0.0)
        return self._factor * np.sqrt(differences), self._factor * np.sqrt(totals)

    def scaled(self, scales: Array) -> TargetHalfWidths:
        """Half-widths of W = Φ + Z S, from moves of Z."""
        is_of_w = self.numbers.ndim == 2
        return self if is_of_w else replace(self, numbers=self.numbers * scales)

    def of_sums(self, sums: Array) -> TargetHalfWidths:
        """Half-widths of W Aᵀ: moves add up, half-widths add up at most."""
        return replace(self, numbers=np.asarray(self.numbers @ sums.T))

    @cached_property
    def _factor(self) -> float:
        B = len(self.numbers)
        return float(stdtrit(B - 1, _LEVEL)) / math.sqrt(B * (B - 1))


def target_half_widths(
    best: Optimum, program: Program, near_optimal: NearOptimal
) -> TargetHalfWidths:
    """Half-widths for the error of W due to its target, if available."""
    targets = [
        loss
        for loss in program.losses
        if isinstance(loss, GradientMatching) and best.weights.get(loss.name, 0.0) > 0.0
    ]
    estimates = [target.estimate for target in targets]
    if estimates and all(e is not None and e.exact for e in estimates):
        return TargetHalfWidths(np.zeros(best.shape))
    blocks = estimates[0].blocks if estimates and estimates[0] is not None else None
    # W is linear in its target: squared losses and given row sums only
    is_linear = all(loss.is_squared for loss in program.losses) and not program.limits
    if len(estimates) == 1 and blocks is not None and is_linear:
        part = DrawCovariance(QuadraticPart(program), blocks)
        inner = near_optimal.hessian
        inner = inner.inner if isinstance(inner, ScaledHessian) else inner
        return TargetHalfWidths(part.moved(best.weights[targets[0].name], inner))
    errors = best.standard_errors
    if errors is None or not np.isfinite(errors).all():
        return TargetHalfWidths(np.zeros(best.shape))
    return TargetHalfWidths(np.asarray(errors_in_interval(best) * errors))


def errors_in_interval(best: Optimum, level: float = 0.95) -> float:
    """The standard errors from a sampled value to each end of its interval."""
    quantile = (1.0 + level) / 2.0
    # degrees of freedom by the number of blocks, if available
    B = 0 if best.target is None else best.target.n_blocks
    return float(stdtrit(B - 1, quantile) if B > 1 else ndtri(quantile))


# ---- The order of the features of one row


OrderBy: TypeAlias = Literal["size", "value"]
"""Order features by |w| or by w, the largest first."""

_LENGTH = np.sqrt(2.0)  # of a form with two entries ±1


def compared(
    w: Array,
    row: int,
    features: Indices,
    near_optimal: NearOptimal,
    beta: float,
    scatter: TargetHalfWidths,
    by: OrderBy,
) -> tuple[Array, NDArray[np.bool_]]:
    """For pairs (d, d): the smallest β at which d is not above e, and whether it is."""
    signs = np.ones(len(w)) if by == "value" else np.where(w < 0.0, -1.0, 1.0)
    keys = signs * w
    block = near_optimal.hessian.block_of(row, features) * np.outer(signs, signs)
    diagonal = np.diag(block)
    sums = diagonal[:, None] + diagonal
    pairs = [(keys[:, None] - keys, np.maximum(sums - 2.0 * block, 0.0))]
    errors = scatter.of_pairs(row, features, signs)
    if by == "size":
        pairs.append((keys[:, None] + keys, np.maximum(sums + 2.0 * block, 0.0)))
    prices = np.full(block.shape, np.inf)
    above = np.ones(block.shape, dtype=bool)
    for (forms, variances), error in zip(pairs, errors, strict=False):
        ahead = np.maximum(forms, 0.0)
        prices = np.minimum(prices, near_optimal.price(ahead, variances, _LENGTH))
        above &= forms > near_optimal.reach(beta, variances, _LENGTH) + error
    return prices, above


def in_order(W: Array, by: OrderBy, present: Mask) -> NDArray[np.intp]:
    """Positions of the features of each row, the largest first, absent ones last."""
    keys = np.where(present, np.abs(W) if by == "size" else W, -np.inf)
    return np.argsort(-keys, axis=1, kind="stable")


def with_certificate(best: Optimum, objective: Objective) -> Optimum:
    """The explanation with a certificate for the objective, computed if missing."""
    same = best.measured(objective)  # without claims if a loss is another
    if same.weights == objective.weights and same.certificate is not None:
        return same
    return best.certified(objective)

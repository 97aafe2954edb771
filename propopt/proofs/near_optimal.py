"""Signs and orders that hold in every explanation almost as good.

All explanations that are almost as good: how far a linear form of them can be off. For
every V whose objective is at most β above that of W,

    |⟨ℓ, V − W⟩| ≤ √((β + e) ⟨ℓ, H⁻¹ℓ⟩) + min(d ‖ℓ‖, √(e ⟨ℓ, H⁻¹ℓ⟩)),

where H is half the Hessian of the squared losses, e the certified excess of W over the
optimum W* and d its certified distance. For F(V) ≥ F* + ⟨V − W*, H (V − W*)⟩, whatever
convex losses F has besides. With bounds F is the Lagrangian, which is no larger than
the objective where the bounds hold. Where W v = t says what rows add up to, H⁻¹ is the
inverse on what that leaves (:mod:`propopt.proofs.hessian`).

How far attributions may be off because their target was estimated. Block estimates Ĝ_b
of the target, whose mean is Ḡ, move the optimum of squared losses by a H⁻¹(Ĝ_b − Ḡ).
The scatter of B such moves, over √B, is the standard error of
any linear form of W; t_{B−1}(0.975) of them cover it 95 times in 100.

The order of the features of one row: what it costs to overturn, and what is certain.
The size of w_d is above that of w_e in every V of a convex set around W just if both

    s_d v_d − s_e v_e > 0   and   s_d v_d + s_e v_e > 0

hold there, for the signs s of W: two linear forms, whose least values are known. In the
order of values there is one, v_d − v_e.
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

from propopt.base.arrays import Array, Attributions, Indices, Mask
from propopt.base.errors import InvalidInput, Refused
from propopt.losses import GradientMatching, Objective, Program
from propopt.losses.maps import Identity
from propopt.losses.restricted import is_completeness
from propopt.proofs.hessian import (
    FeatureSumHessian,
    Hessian,
    QuadraticPart,
    ScaledHessian,
    is_squared,
)
from propopt.proofs.optimum import Optimum
from propopt.proofs.target_error import DrawCovariance


# ---- What holds in every near-optimal explanation: signs, orders, ranges


@final
@dataclass(frozen=True, eq=False)
class NearOptimal:
    """The set of all V that are at most β worse than W, for any β ≥ 0."""

    hessian: Hessian  # H⁻¹, where it is asked for
    modulus: float  # a, the weight of gradient matching: H ≥ aI
    excess: float  # e; d is infinite where it is not known
    distance: float  # d; d is infinite where it is not known

    @classmethod
    def around(cls, best: Optimum, program: Program) -> NearOptimal:
        """The set around an optimum of the program."""
        certificate = best.certificate
        if certificate is None:
            raise InvalidInput(
                f"certain: expected an optimized explanation, got {best.method!r} "
                "without certificate; certified(objective) gives one"
            )
        # all losses, those of bounds beside the others, are what the Lagrangian weighs;
        # what rows add up to stays a constraint
        kept = tuple(bound for bound in program.bounds if is_completeness(bound))
        rest = tuple(bound for bound in program.bounds if bound not in kept)
        losses = (*program.losses, *(bound.loss for bound in rest))
        rates = np.array([best.rates.get(loss.name, 0.0) for loss in losses])
        if not np.isfinite(rates).all():
            raise Refused(
                "certain: a limit of zero leaves a part of all explanations alone, and "
                "what is near an optimum there is not known; use a small limit or a "
                "weight"
            )
        # the modulus is of squared losses of W itself; the excess of F, and of the
        # Lagrangian F + Σ μ (loss − limit), over what is the least
        own = (isinstance(x.map, Identity) and is_squared(x) for x in losses)
        above = math.fsum(
            best.multipliers.get(name, 0.0) * (best.losses[name] - bound.limit)
            for bound in rest
            for name in [bound.loss.name]
        )
        value = certificate.value + max(above, 0.0)
        return cls(
            QuadraticPart(Program(losses, kept, program.shape)).hessian(rates),
            math.fsum(compress(rates.tolist(), own)),
            max(value - certificate.lower_bound, 0.0),
            math.inf if certificate.distance is None else certificate.distance,
        )

    def of_sums(self, sums: Array) -> NearOptimal:
        """The set of all V Aᵀ, for sums A (K, D) of features that are in one each."""
        most = float(sums.sum(axis=1).max())  # ‖A‖²: how much longer forms can be
        return NearOptimal(
            FeatureSumHessian(self.hessian, sums),
            self.modulus / most,
            self.excess,
            self.distance * math.sqrt(most),
        )

    def scaled(self, scales: Array) -> NearOptimal:
        """The set of all Φ + V S, for one number s_d (D,) for each column."""
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
        """How far ⟨ℓ, V⟩ can be from ⟨ℓ, W⟩, for ⟨ℓ, H⁻¹ℓ⟩ and ‖ℓ‖."""
        widths: Array = np.sqrt((beta + self.excess) * variances)
        return widths + self._slack(variances, lengths)

    def price(self, sizes: Array, variances: Array, lengths: float = 1.0) -> Array:
        """The least β for which ⟨ℓ, V⟩ can be zero; infinite if no V changes it."""
        left = np.maximum(sizes - self._slack(variances, lengths), 0.0)
        never = np.where(left > 0.0, np.inf, 0.0)
        prices = np.divide(left**2, variances, out=never, where=variances > 0.0)
        return np.asarray(np.maximum(prices - self.excess, 0.0))

    def _slack(self, variances: Array, lengths: float) -> Array:
        """How far ⟨ℓ, W*⟩ can be from ⟨ℓ, W⟩."""
        return np.minimum(self.distance * lengths, np.sqrt(self.excess * variances))


# ---- What counts as zero among attributions, and how two rows differ


ZERO: Final = 1e-12
"""Attributions up to this share of the largest count as zero."""


def rounded_to_zero(W: Attributions) -> Attributions:
    """W with entries up to 1e-12 max|w| set to zero."""
    return np.where(np.abs(W) <= ZERO * np.abs(W).max(initial=0.0), 0.0, W)


def signs_of(W: Attributions) -> NDArray[np.int8]:
    """−1, 0 or 1 of each entry."""
    return np.sign(rounded_to_zero(W)).astype(np.int8)


def root_mean_square(W: Array) -> float:
    """√(mean of squares), without overflow."""
    unit = float(np.abs(W).max(initial=0.0)) or 1.0
    return unit * float(np.sqrt(np.mean((W / unit) ** 2)))


# ---- How far attributions may be off because their target was estimated


_LEVEL = 0.975


@final
@dataclass(frozen=True, eq=False)
class TargetHalfWidths:
    """Half-widths of 95 % intervals, for the target's error alone."""

    words: str  # what a reader has to know of it
    # (N, D) of W alone, those of a pair add up at most; or (B, N, D): moves of W with
    # blocks of the target, whose mean is zero, which t_{B−1}(0.975)/√(B(B−1)) scales
    numbers: Array

    def of_entries(self) -> Attributions:
        """For each attribution, (N, D)."""
        if self.numbers.ndim == 2:
            return self.numbers
        squares = np.einsum("bnd,bnd->nd", self.numbers, self.numbers)
        return np.asarray(self._factor * np.sqrt(squares))

    def of_pairs(
        self, row: int, features: Indices, signs: Array
    ) -> tuple[Array, Array]:
        """Of s_d w_d − s_e w_e and of s_d w_d + s_e w_e in one row, (d, d) each."""
        own = self.numbers[..., row, features]
        if own.ndim == 1:
            both = own[:, None] + own
            return both, both
        products = (own * signs).T @ (own * signs)
        own = np.diag(products)
        sums = own[:, None] + own
        rest = np.maximum(sums - 2.0 * products, 0.0)
        both = np.maximum(sums + 2.0 * products, 0.0)
        return self._factor * np.sqrt(rest), self._factor * np.sqrt(both)

    def scaled(self, scales: Array) -> TargetHalfWidths:
        """Those of W, where moves are those of Z and W = Φ + Z S."""
        is_of_w = self.numbers.ndim == 2
        return self if is_of_w else replace(self, numbers=self.numbers * scales)

    def of_sums(self, sums: Array) -> TargetHalfWidths:
        """Those of W Aᵀ: moves are added up, and half-widths add up at most."""
        return replace(self, numbers=np.asarray(self.numbers @ sums.T))

    @cached_property
    def _factor(self) -> float:
        B = len(self.numbers)
        return float(stdtrit(B - 1, _LEVEL)) / math.sqrt(B * (B - 1))


def target_half_widths(
    best: Optimum, program: Program, near: NearOptimal
) -> TargetHalfWidths:
    """What is known of the error of W that comes from its target."""
    targets = [
        loss
        for loss in program.losses
        if isinstance(loss, GradientMatching) and best.weights.get(loss.name, 0.0) > 0.0
    ]
    estimates = [target.estimate for target in targets]
    if estimates and all(e is not None and e.exact for e in estimates):
        return TargetHalfWidths("the target is exact", np.zeros(best.shape))
    blocks = estimates[0].blocks if estimates and estimates[0] is not None else None
    # W is linear in its target: squared losses, and sums of rows at most
    is_linear = all(map(is_squared, program.losses))
    is_linear &= all(map(is_completeness, program.bounds))
    if len(estimates) == 1 and blocks is not None and is_linear:
        part = DrawCovariance(QuadraticPart(program), blocks)
        inner = near.hessian
        inner = inner.inner if isinstance(inner, ScaledHessian) else inner
        moves = part.moved(best.weights[targets[0].name], inner)
        words = f"errors of the target from {len(moves)} blocks are included"
        return TargetHalfWidths(words, moves)
    errors = best.standard_errors
    if errors is None or not np.isfinite(errors).all():
        unknown = "the error of the target is not known, and not included"
        return TargetHalfWidths(unknown, np.zeros(best.shape))
    # of the blocks of draws that they were estimated from, where that is known
    B = 0 if best.target is None else best.target.n_blocks
    factor = float(stdtrit(B - 1, _LEVEL) if B > 1 else ndtri(_LEVEL))
    words = "standard errors of the target are included"
    return TargetHalfWidths(words, np.asarray(factor * errors))


# ---- The order of the features of one row: what it costs to overturn, and what is
# certain


OrderBy: TypeAlias = Literal["size", "value"]
"""Features by |w|, the largest first, or by w."""

_LENGTH = np.sqrt(2.0)  # of a form with two entries ±1


def compared(
    w: Array,
    row: int,
    features: Indices,
    near: NearOptimal,
    beta: float,
    scatter: TargetHalfWidths,
    by: OrderBy,
) -> tuple[Array, NDArray[np.bool_]]:
    """Of pairs (d, d): the least rise at which d is not above e, if it surely is."""
    signs = np.ones(len(w)) if by == "value" else np.where(w < 0.0, -1.0, 1.0)
    keys = signs * w
    block = near.hessian.block_of(row, features) * np.outer(signs, signs)
    own = np.diag(block)
    sums = own[:, None] + own
    pairs = [(keys[:, None] - keys, np.maximum(sums - 2.0 * block, 0.0))]
    errors = scatter.of_pairs(row, features, signs)
    if by == "size":
        pairs.append((keys[:, None] + keys, np.maximum(sums + 2.0 * block, 0.0)))
    prices, above = np.full(block.shape, np.inf), np.ones(block.shape, dtype=bool)
    for (forms, variances), error in zip(pairs, errors, strict=False):
        ahead = np.maximum(forms, 0.0)
        prices = np.minimum(prices, near.price(ahead, variances, _LENGTH))
        above &= forms > near.reach(beta, variances, _LENGTH) + error
    return prices, above


def in_order(W: Array, by: OrderBy, present: Mask) -> NDArray[np.intp]:
    """Positions of the features of each row, the largest first, absent ones last."""
    keys = np.where(present, np.abs(W) if by == "size" else W, -np.inf)
    return np.argsort(-keys, axis=1, kind="stable")


SHARE: Final = 0.05
"""A small change of a row, as a share of the root mean square size of a row."""


def small_change(best: Optimum) -> float:
    """δ of an explanation: 5 % of the root mean square size of a row.

    By the reference rows where it has them, so that it is the same for one row alone.
    """
    size = best.row_size
    if size is None:
        W = best.attributions
        size = root_mean_square(W) * math.sqrt(W.shape[1])
    return SHARE * float(size)


def with_certificate(best: Optimum, objective: Objective) -> Optimum:
    """The explanation with a certificate for the objective: its own, or a new one."""
    same = best.measured(objective)  # without claims if a loss is another
    if same.weights == objective.weights and same.certificate is not None:
        return same
    return best.certified(objective)

"""The cost of the error of an estimated target, from blocks of its draws.

For the target Ĝ = G + E the optimum Ŵ = W(Ĝ) has, measured with the true target, the
excess

    F_G(Ŵ) − F_G* = a² ⟨E, H⁻¹E⟩

if F is quadratic, and at most this with further convex terms, constraints on W
included: F_Ĝ(V) ≥ F_Ĝ(Ŵ) + ⟨Δ, HΔ⟩ with Δ = V − Ŵ, and F_G − F_Ĝ is linear in V
with the slope 2aE, so that F_G(V) − F_G(Ŵ) ≥ ⟨Δ, HΔ⟩ + 2a⟨E, Δ⟩ ≥ −a²⟨E, H⁻¹E⟩.

Blocks Ĝ_b of draws, each unbiased, have the mean Ĝ. With their Gram matrix

    K_bc = a² ⟨Ĝ_b − Ĝ, H⁻¹(Ĝ_c − Ĝ)⟩

the expected excess is tr K/(B(B − 1)) for any correlation of errors between points. It
is a sum of squares Σ λ z², z ~ N(0, 1), which varies about its expectation
as χ²_ν/ν with ν = (Σ λ)²/Σ λ² (Satterthwaite 1946): few degrees ν mean that the errors
are nearly equal everywhere. K has n = B − 1 independent degrees for each of the excess,
so that excess/(tr K/(B n)) ~ F(ν, nν). Both sums are unbiased:

    E tr² S = (Σ λ)² + 2 Σ λ²/n,  E tr S² = (1 + 1/n) Σ λ² + (Σ λ)²/n,  S = K/n.

If K is too expensive, the energies of n = B − 1 combinations of blocks suffice
(of Helmert): their mean is tr K/n, their variance 2 Σ λ².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, final

import numpy as np
from scipy.linalg import helmert
from scipy.special import fdtri

from propopt.base.arrays import Array
from propopt.base.checks import read_only
from propopt.base.declared import field, transient
from propopt.losses import FunctionMatching, GradientMatching, Program, PropertyLoss
from propopt.losses.algebra import Faithfulness, positive_terms
from propopt.losses.faithfulness import Estimate
from propopt.proofs.curvature import QuadraticBasis
from propopt.proofs.hessian import (
    ROUGHLY,
    CgHessian,
    Hessian,
    QuadraticPart,
    SpectralHessian,
)


_LEVEL = 0.95
"""Probability of the interval for the excess."""

MOST_DEGREES = 1e6
"""With this many degrees the excess is within 0.3 % of its expectation."""


Relation: TypeAlias = Literal["about", "at most"]
"""Whether the value estimates the excess or bounds it."""


@final
@dataclass(frozen=True, kw_only=True)
class TargetError:
    """The cost of the error of an estimated target, in addition to the gap.

    The excess F_G(W(Ĝ)) − F_G* for the true target G, estimated from blocks of draws.
    """

    # the expected excess, in units of the objective
    value: float = field(low=0.0, missing=True)
    # the scale of the relative gap
    scale: float = field(default=1.0, low=0.0, missing=True)
    # the standard error of value over the blocks; NaN if not estimated
    spread: float = field(low=0.0, missing=True)
    source: str = field(default="")  # description of the computation of the target
    # the excess of one estimate varies about its expectation as χ²_ν/ν
    degrees: float = field(default=math.nan, low=0.0, missing=True)
    # number of blocks of draws; 0 if not from blocks
    n_blocks: int = field(default=0, low=0)
    # "at most" if the objective is not quadratic, or there are bounds
    relation: Relation = "about"
    # root mean square over entries of the target: of its error, and of itself
    rms: float = field(default=math.nan, low=0.0, missing=True)
    size: float = field(default=math.nan, low=0.0, missing=True)
    n_entries: int = field(default=0, low=0)
    # K of blocks of draws (B, B), which adds up over rows
    gram: Sequence[Sequence[float]] = transient(default=(), compare=False, repr=False)

    @classmethod
    def of_gram(cls, gram: Array) -> TargetError:
        """Compute it from K (B, B), the Gram matrix of the deviations of the blocks."""
        n = len(gram) - 1
        return cls(
            value=float(np.trace(gram)) / (n * (n + 1)),
            spread=_spread(np.diag(gram)),
            degrees=_degrees(gram / n, n),
            n_blocks=n + 1,
            gram=gram.tolist(),
        )

    @classmethod
    def joined(cls, errors: Sequence[TargetError]) -> TargetError:
        """The error of all rows, from those of disjoint blocks of rows.

        It is unknown if that of any block is.
        """
        worst = max(errors, key=lambda x: (math.isnan(x.value), x.n_blocks))
        scale = math.fsum(one.scale for one in errors)
        if not worst.n_blocks:
            return replace(worst, scale=scale)
        grams = [one.gram for one in errors if one.n_blocks]
        counts = [one.n_entries for one in errors]
        return replace(
            cls.of_gram(np.sum(grams, axis=0)),
            scale=scale,
            source=worst.source,
            relation=worst.relation,
            rms=_joint_rms([one.rms for one in errors], counts),
            size=_joint_rms([one.size for one in errors], counts),
            n_entries=sum(counts),
        )

    @classmethod
    def of_energies(cls, energies: Array) -> TargetError:
        """Compute it from a² ⟨E, H⁻¹E⟩ of the n contrasts of n + 1 blocks."""
        n = len(energies)
        mean = float(energies.mean())
        variance = float(energies.var(ddof=1)) if n > 1 else math.inf
        least = 2.0 * mean**2 / MOST_DEGREES
        return cls(
            value=mean / (n + 1),
            spread=math.sqrt(variance / n) / (n + 1) if n > 1 else math.nan,
            degrees=max(2.0 * mean**2 / max(variance, least), 1.0) if mean else 1.0,
            n_blocks=n + 1,
        )

    @classmethod
    def of(
        cls,
        aim: Estimate,
        scale: float,
        excess: TargetError | None,
        relation: Relation = "about",
    ) -> TargetError:
        """The sampling error of an estimate, with the excess of its draws if any."""
        if aim.exact:
            return exact_target(aim.source, scale).of_entries(aim.values)
        if excess is None or aim.blocks is None:
            return unknown_target(aim.source, scale)
        source = aim.source
        if "draws" not in source:  # the source may contain their number
            source = f"{source}, {aim.n_draws:,} draws"
        squares = aim.blocks.var(axis=0) / (len(aim.blocks) - 1)
        sized = excess.of_entries(aim.values)
        return replace(
            sized,
            scale=scale,
            source=source,
            relation=relation,
            rms=math.sqrt(float(squares.sum()) / max(sized.n_entries, 1)),
        )

    def of_entries(self, values: Array) -> TargetError:
        """The same error for a target of these values, which may be some rows."""
        count = int(np.count_nonzero(values))  # other columns or words are not used
        size = math.sqrt(float(np.vdot(values, values)) / max(count, 1))
        return replace(self, size=size, n_entries=count)

    @property
    def relative(self) -> float:
        """The relative excess ``value/scale``; NaN if unknown."""
        return self._share(self.value)

    @property
    def share(self) -> float:
        """The root mean square of the error relative to that of the target."""
        if not self.rms:
            return 0.0
        return self.rms / self.size if self.size else math.inf

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the relative excess with a probability of 95 %.

        It has the quantiles of excess/``value`` ~ F(ν, (B − 1)ν), and starts at zero if
        the value is an upper bound.
        """
        if not self.n_blocks:
            return self.relative, self.relative
        low, high = (self._share(self.value * x) for x in self._ratios)
        return (low if self.relation == "about" else 0.0), high

    @property
    def _ratios(self) -> list[float]:
        """The 95 % limits of squares of errors, relative to their estimate."""
        tail = (1.0 - _LEVEL) / 2.0
        below = self.degrees * (self.n_blocks - 1)
        limits: list[float] = fdtri(self.degrees, below, [tail, 1.0 - tail]).tolist()
        return limits

    def _share(self, excess: float) -> float:
        """The excess relative to the scale; infinite for an objective of zero."""
        if self.scale:
            return excess / self.scale
        return math.inf if excess > 0.0 else excess


def exact_target(source: str, scale: float) -> TargetError:
    """The sampling error (zero) of an exactly computed target."""
    return TargetError(value=0.0, scale=scale, spread=0.0, source=source, rms=0.0)


def unknown_target(source: str, scale: float) -> TargetError:
    """The sampling error (NaN) of a target with an unknown error."""
    return TargetError(value=math.nan, scale=scale, spread=math.nan, source=source)


def _joint_rms(sizes: Sequence[float], counts: Sequence[int]) -> float:
    """The root mean square of all entries of some parts; 0 without entries."""
    squares = (x**2 * n for x, n in zip(sizes, counts, strict=True) if n)
    return math.sqrt(math.fsum(squares) / max(sum(counts), 1))


def _spread(energies: Array) -> float:
    """√((B−1)/B Σ (ê_(b) − mean)²), as leaving out b removes K_bb B/(B−1) from tr K."""
    B = len(energies)
    if B < 3:
        return math.nan
    scatter = float(((energies - energies.mean()) ** 2).sum())
    return float(np.sqrt(scatter / (B * (B - 1)))) / (B - 2)


def _degrees(S: Array, n: int) -> float:
    """The degrees ν = (Σ λ)²/Σ λ² ≥ 1 of n deviations; 1 for one deviation."""
    if n < 2:
        return 1.0
    trace = float(np.trace(S))
    squares = float((S**2).sum())
    sum_of_squares = (squares - trace**2 / n) * n**2 / ((n - 1) * (n + 2))  # Σ λ²
    smallest = trace**2 / MOST_DEGREES
    return (
        max((trace**2 - 2.0 * sum_of_squares / n) / max(sum_of_squares, smallest), 1.0)
        if trace
        else 1.0
    )


@final
class DrawCovariance:
    """Covariance of the draws of a target, weighted by the inverse Hessian."""

    def __init__(
        self,
        part: QuadraticPart,  # the squared losses
        blocks: Array,  # (B, N, D): ĝ_b
        # maps E (N, D) to a function from weights to a² ⟨E, H⁻¹E⟩, if cheap
        energy: Callable[[Array], Callable[[Array], float]] | None = None,
    ) -> None:
        self._part = part
        self._energy = energy
        self._deviations = blocks - blocks.mean(axis=0)
        self._coefficients: Array | None = None

    def excess(self, a: float, weights: Array) -> TargetError:
        """The expected cost of the error of the mean of the blocks."""
        if self._energies is None:
            return TargetError.of_gram(self.gram(a, weights))
        energies = [energy(weights) for energy in self._energies]
        return TargetError.of_energies(np.array(energies))

    @cached_property
    def _energies(self) -> list[Callable[[Array], float]] | None:
        """Energy functions of the contrasts, for any weights."""
        if self._energy is None:
            return None
        # B − 1 orthonormal contrasts, of independent blocks independent, each with
        # the variance of a block
        rows = helmert(len(self._deviations))
        return [self._energy(np.tensordot(row, self._deviations, 1)) for row in rows]

    def gram(self, a: float, weights: Array) -> Array:
        """K_bc = a² ⟨Ĝ_b − Ĝ, H⁻¹(Ĝ_c − Ĝ)⟩, shape (B, B)."""
        H = self._part.hessian(weights)
        if isinstance(H, SpectralHessian):
            # ⟨D_b, H⁻¹D_c⟩ = Σ (UᵀD_bV)(UᵀD_cV)/h
            if self._coefficients is None:  # the bases do not depend on the weights
                self._coefficients = np.stack([H.rotated(D) for D in self._deviations])
            rotated = self._coefficients / np.sqrt(H.values)
            Z = rotated.reshape(len(self._deviations), -1)
            return a**2 * (Z @ Z.T)
        flat = self._deviations.reshape(len(self._deviations), -1)
        K = a * flat @ self.moved(a, H).reshape(len(flat), -1).T
        return (K + K.T) / 2.0

    def standard_errors(self, a: float, weights: Array) -> Array:
        """Standard errors (N, D) of W(Ĝ) for quadratic F: spread of W(Ĝ_b)/√B."""
        moved = self.moved(a, self._part.hessian(weights))
        B = len(moved)
        return np.sqrt((moved**2).sum(axis=0) / (B * (B - 1)))

    def moved(self, a: float, H: Hessian) -> Array:
        """The moves W(Ĝ_b) − W(Ĝ) = a H⁻¹(Ĝ_b − Ĝ), shape (B, N, D)."""
        # to eight digits
        solver = replace(H, reduction=ROUGHLY) if isinstance(H, CgHessian) else H
        return np.stack([a * solver.solve(D) for D in self._deviations])


@final
@dataclass(frozen=True, eq=False)
class TargetErrorOperator:
    """Errors of the targets of a program, prepared for any weights."""

    program: Program  # its faithfulness losses have targets
    # from a solver, if available: eigenbases over points and over features, and a map
    # of E (N, D) to a function from weights to a² ⟨E, H⁻¹E⟩
    bases: tuple[QuadraticBasis, QuadraticBasis] | None = None
    energy: Callable[[Array], Callable[[Array], float]] | None = None

    def error(
        self, weights: Array, scale: float, multipliers: Sequence[float] = ()
    ) -> TargetError:
        """The cost of the error of the target at the optimum for these weights."""
        matching = self._matching_losses(weights)
        exact = exact_targets(matching, scale)
        if exact is not None:
            return exact
        inexact = [loss for loss in matching if exact_source(loss) is None]
        if len(inexact) > 1:
            names = " and ".join(loss.name for loss in inexact)
            return unknown_target(
                f"of {names}: the joint distribution of their errors is unknown", scale
            )
        return self._of_one(inexact[0], self._priced(weights, multipliers), scale)

    def standard_errors(self, weights: Array) -> Array | None:
        """Standard errors of the attributions (N, D), from W(Ĝ_b) over the blocks.

        None without draws, or if the objective is not quadratic.
        """
        matching = self._matching_losses(weights)
        sampled = [loss for loss in matching if sampled_blocks(loss) is not None]
        if len(sampled) != 1 or self._relation(weights) == "at most":
            return None
        a = self._weight(sampled[0], weights)
        return read_only(self._scatter(sampled[0]).standard_errors(a, weights))

    def _of_one(self, loss: PropertyLoss, weights: Array, scale: float) -> TargetError:
        """The error of the only inexact target; weights of all losses."""
        reason = self._why_unknown(loss)
        if reason is not None:
            return unknown_target(reason, scale)
        estimate = _estimate(loss)
        excess = None
        if estimate.blocks is not None:
            excess = self._scatter(loss).excess(self._weight(loss, weights), weights)
        return TargetError.of(estimate, scale, excess, self._relation(weights))

    def _why_unknown(self, loss: PropertyLoss) -> str | None:
        if not isinstance(loss, GradientMatching):
            return f"of {loss.name}"
        if loss.estimate is None:
            return "given as numbers"
        if loss.estimate.blocks is None:
            return None
        if not loss.is_squared:
            return "estimated and matched in l1"
        if loss not in self.program.losses:
            return f"estimated and only bounded, by {loss.name}"
        return None

    def _matching_losses(self, weights: Array) -> list[PropertyLoss]:
        """The faithfulness losses that determine the optimum."""
        losses = [loss for _, loss in positive_terms(weights, self.program.losses)]
        losses += [bound.loss for bound in self.program.bounds]
        return [loss for loss in losses if isinstance(loss, Faithfulness)]

    def _relation(self, weights: Array) -> Relation:
        losses = self.program.losses
        terms = positive_terms(weights[: len(losses)], losses)
        is_quadratic = all(loss.is_squared for _, loss in terms)
        return "at most" if self.program.limits or not is_quadratic else "about"

    def _priced(self, weights: Array, multipliers: Sequence[float]) -> Array:
        """Weights of all losses of :attr:`_constrained`."""
        bounds = self.program.bounds
        prices = [*multipliers, *(0.0 for _ in bounds)]  # zeros for missing ones
        pairs = zip(prices, bounds, strict=False)
        return np.append(weights, [mu for mu, bound in pairs if bound.limit > 0.0])

    def _weight(self, loss: PropertyLoss, weights: Array) -> float:
        return float(weights[self.program.losses.index(loss)])

    def _scatter(self, loss: PropertyLoss) -> DrawCovariance:
        """The covariance of the draws of its target, for all losses and bounds."""
        if loss not in self._scatters:
            blocks = _estimate(loss).blocks
            assert blocks is not None, "it is drawn"
            part = self._constrained
            quadratic = part if part.totals is None else part.inner
            scatter = DrawCovariance(quadratic, part.free(blocks), self.energy)
            self._scatters[loss] = scatter
        return self._scatters[loss]

    @cached_property
    def _scatters(self) -> dict[PropertyLoss, DrawCovariance]:
        return {}

    @cached_property
    def _constrained(self) -> QuadraticPart:
        """The quadratic part of losses and bounded losses, with given row sums."""
        program = self.program
        losses = (*program.losses, *(bound.loss for bound in program.limits))
        bases = None if program.row_sums else self.bases
        return QuadraticPart(Program(losses, program.row_sums, program.shape), bases)


def exact_source(loss: PropertyLoss) -> str | None:
    """The source of an exact target, in words; None for an inexact target."""
    match loss:
        case GradientMatching(estimate=Estimate(exact=True, source=source)):
            return source
        case FunctionMatching():
            return "exact (function values)"
        case _:
            return None


def exact_targets(losses: Iterable[PropertyLoss], scale: float) -> TargetError | None:
    """The sampling error (zero) of exact targets; None if one of them is not."""
    sources = [exact_source(loss) for loss in losses]
    if None in sources:
        return None
    names = dict.fromkeys(source or "" for source in sources)
    return exact_target(" and ".join(names) or "not used", scale)


def sampled_blocks(loss: PropertyLoss) -> Array | None:
    """Blocks of draws (B, N, D) of the target of a loss; None without draws."""
    match loss:
        case GradientMatching(estimate=Estimate(exact=False, blocks=blocks)):
            return blocks
        case _:
            return None


def _estimate(loss: PropertyLoss) -> Estimate:
    assert isinstance(loss, GradientMatching)
    assert loss.estimate is not None
    return loss.estimate

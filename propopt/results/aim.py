"""What an objective aims at, and what the error of that costs the optimum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.checks import sealed
from propopt.curvature.eigenbasis import Eigenbasis
from propopt.curvature.excess import Scatter
from propopt.curvature.hessian import QuadraticPart
from propopt.curvature.tangential import ConstrainedPart
from propopt.estimates import Estimate
from propopt.losses import (
    Faithfulness,
    FunctionMatching,
    GradientMatching,
    Program,
    PropertyLoss,
)
from propopt.losses.restricted import is_complete
from propopt.penalties import Squared
from propopt.results.target_error import (
    Relation,
    TargetError,
    exact_target,
    unknown_target,
)


@final
@dataclass(frozen=True, eq=False)
class KnownCurvature:
    """What a solver knows of the squared losses of a program.

    Parameters
    ----------
    bases : (Eigenbasis, Eigenbasis), optional
        Over points and over features.
    energy : callable, optional
        E (N, D) to what gives a² ⟨E, H⁻¹E⟩ for any weights.
    """

    bases: tuple[Eigenbasis, Eigenbasis] | None = None
    energy: Callable[[Array], Callable[[Array], float]] | None = None


@final
@dataclass(frozen=True, eq=False)
class Aim:
    """The targets of a program, made ready for any weights.

    Parameters
    ----------
    program : Program
        Its faithfulness losses have targets.
    known : KnownCurvature
        What was computed before.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from propopt.estimates import Estimate
    >>> blocks = np.random.default_rng(0).normal(size=(10, 5, 2))
    >>> drawn = Estimate.of_blocks(blocks, source="noise", n_draws=100)
    >>> objective = po.GradientMatching(drawn) + po.PairwiseRobustness(
    ...     po.chain_graph(5)
    ... )
    >>> aim = Aim(po.losses.Program(objective.losses))
    >>> aim.error(objective.coefficients, scale=1.0).n_blocks
    10
    """

    program: Program
    known: KnownCurvature = KnownCurvature()

    def error(
        self, weights: Array, scale: float, multipliers: Sequence[float] = ()
    ) -> TargetError:
        """What the error of the target costs the optimum for these weights.

        Parameters
        ----------
        weights : array (k,)
            In the order of the losses.
        scale : float
            What the error is relative to.
        multipliers : sequence of float
            Those of the bounds: their losses count as weighted by these.
        """
        aims = self._aims(weights)
        inexact = [loss for loss in aims if _known_exactly(loss) is None]
        if not inexact:
            sources = dict.fromkeys(_known_exactly(loss) or "" for loss in aims)
            return exact_target(" and ".join(sources) or "not used", scale)
        if len(inexact) > 1:
            names = " and ".join(loss.name for loss in inexact)
            return unknown_target(
                f"of {names}: how their errors go together is not known", scale
            )
        return self._of_one(inexact[0], self._priced(weights, multipliers), scale)

    def standard_errors(self, weights: Array) -> Array | None:
        """Of the attributions (N, D), from the scatter of W(Ĝ_b) over the blocks.

        None where nothing was drawn, or the objective is not quadratic.
        """
        drawn = [loss for loss in self._aims(weights) if _is_drawn(loss)]
        if len(drawn) != 1 or self._relation(weights) == "at most":
            return None
        a = self._weight(drawn[0], weights)
        return sealed(self._scatter(drawn[0]).standard_errors(a, weights))

    def _of_one(self, loss: PropertyLoss, weights: Array, scale: float) -> TargetError:
        """Of the only inexact target; weights are those of all losses."""
        reason = self._why_unknown(loss)
        if reason is not None:
            return unknown_target(reason, scale)
        excess = self._scatter(loss).excess(self._weight(loss, weights), weights)
        return TargetError(
            **vars(excess),
            scale=scale,
            source=_drawn_source(_estimate(loss)),
            relation=self._relation(weights),
        )

    def _why_unknown(self, loss: PropertyLoss) -> str | None:
        if not isinstance(loss, GradientMatching):
            return f"of {loss.name}: its error is not known"
        if loss.estimate is None:
            return "given as numbers, its error is not known"
        if loss.estimate.blocks is None:
            return _undrawn_source(loss.estimate)
        if not isinstance(loss.penalty, Squared):
            return "estimated and matched in l1: its error is not known"
        if loss not in self.program.losses:
            return f"estimated and only bounded, by {loss.name}: its error is not known"
        return None

    def _aims(self, weights: Array) -> list[PropertyLoss]:
        """The faithfulness losses that decide on the optimum."""
        pairs = zip(weights, self.program.losses, strict=True)
        losses = [loss for weight, loss in pairs if weight > 0]
        losses += [bound.loss for bound in self.program.bounds]
        return [loss for loss in losses if isinstance(loss, Faithfulness)]

    def _relation(self, weights: Array) -> Relation:
        squared = (isinstance(x.penalty, Squared) for x in self.program.losses)
        pairs = zip(weights[: len(self.program.losses)], squared, strict=True)
        is_quadratic = all(fits for weight, fits in pairs if weight > 0)
        is_free = all(map(is_complete, self.program.bounds))
        return "about" if is_quadratic and is_free else "at most"

    def _priced(self, weights: Array, multipliers: Sequence[float]) -> Array:
        """Weights of all losses that :attr:`_constrained` has."""
        bounds = self.program.bounds
        prices = [*multipliers, *(0.0 for _ in bounds)]  # zero where there are too few
        pairs = zip(prices, bounds, strict=False)
        return np.append(weights, [mu for mu, bound in pairs if bound.limit > 0.0])

    def _weight(self, loss: PropertyLoss, weights: Array) -> float:
        return float(weights[self.program.losses.index(loss)])

    def _scatter(self, loss: PropertyLoss) -> Scatter:
        """Of the draws of its target, before all losses, those of the bounds too."""
        if loss not in self._scatters:
            blocks = _estimate(loss).blocks
            assert blocks is not None, "it is drawn"
            free = self._constrained.free(blocks)
            self._scatters[loss] = Scatter(
                self._quadratic_part, free, self.known.energy
            )
        return self._scatters[loss]

    @cached_property
    def _scatters(self) -> dict[PropertyLoss, Scatter]:
        return {}

    @cached_property
    def _constrained(self) -> ConstrainedPart:
        """Of the losses and the bounded ones, where rows add up to what is given.

        Other limits of zero, whose multipliers are infinite, are left out. Without them
        H is smaller, and its inverse larger: what is at most that stays so.
        """
        bounds = self.program.bounds
        bounded = (bound.loss for bound in bounds if bound.limit > 0.0)
        losses = (*self.program.losses, *bounded)
        kept = tuple(bound for bound in bounds if is_complete(bound))
        return ConstrainedPart(Program(losses, kept, self.program.shape))

    @cached_property
    def _quadratic_part(self) -> QuadraticPart:
        """H for errors that are free; of eigenbases that are known already, if any."""
        part = self._constrained
        if part.totals is not None:
            return part.inner
        return QuadraticPart(part.program, self.known.bases)


def _known_exactly(loss: PropertyLoss) -> str | None:
    """How the target of the loss is known exactly, in words; None if it is not."""
    match loss:
        case GradientMatching(estimate=Estimate(exact=True, source=source)):
            return source
        case FunctionMatching():
            return "exact (function values)"
        case _:
            return None


def _is_drawn(loss: PropertyLoss) -> bool:
    match loss:
        case GradientMatching(estimate=Estimate(exact=False, blocks=blocks)):
            return blocks is not None
        case _:
            return False


def _estimate(loss: PropertyLoss) -> Estimate:
    assert isinstance(loss, GradientMatching)
    assert loss.estimate is not None
    return loss.estimate


def _undrawn_source(estimate: Estimate) -> str:
    if estimate.source == "given":
        return "given as a function, its error is not known"
    return f"by {estimate.source}"


def _drawn_source(estimate: Estimate) -> str:
    """Of draws, whose number stands in it already where the source knows it."""
    if "draws" in estimate.source:
        return estimate.source
    return f"{estimate.source}, {estimate.n_draws:,} draws"

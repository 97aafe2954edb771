"""All explanations that are almost as good: how far a linear form of them can be off.

For every V whose objective is at most β above that of W,

    |⟨ℓ, V − W⟩| ≤ √((β + e) ⟨ℓ, H⁻¹ℓ⟩) + min(d ‖ℓ‖, √(e ⟨ℓ, H⁻¹ℓ⟩)),

where H is half the Hessian of the squared losses, e the certified excess of W over the
optimum W* and d its certified distance. For F(V) ≥ F* + ⟨V − W*, H (V − W*)⟩, whatever
convex losses F has besides. With bounds F is the Lagrangian, which is no larger than
the objective where the bounds hold. Where W v = t says what rows add up to, H⁻¹ is the
inverse on what that leaves (:mod:`propopt.curvature.tangential`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from propopt._typing import Array
from propopt.certificate import Certificate
from propopt.curvature.inverse import Hessian
from propopt.curvature.tangential import ConstrainedPart
from propopt.errors import InvalidInput, Refused
from propopt.losses import Program, PropertyLoss
from propopt.losses.restricted import is_complete
from propopt.maps import Identity
from propopt.penalties import Squared


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


@final
@dataclass(frozen=True, eq=False)
class NearOptimal:
    """The set of all V that are at most β worse than W, for any β ≥ 0.

    Parameters
    ----------
    hessian : Hessian
        H⁻¹, where it is asked for.
    modulus : float
        a, the weight of gradient matching: H ≥ aI.
    excess, distance : float
        e and d; d is infinite where it is not known.
    """

    hessian: Hessian
    modulus: float
    excess: float
    distance: float

    @classmethod
    def around(cls, best: Explanation, program: Program) -> NearOptimal:
        """The set around an optimum of the program.

        Raises
        ------
        InvalidInput
            If the explanation has no certificate.
        Refused
            If the set is not bounded by squared losses, or a limit is zero.
        """
        certificate = best.certificate
        if certificate is None:
            raise InvalidInput(
                f"certain: expected an optimized explanation, got {best.method!r} "
                "without certificate; certified(objective) gives one"
            )
        priced = _priced(best, program)
        rates = np.array([best.rates.get(loss.name, 0.0) for loss in priced.losses])
        return cls(
            ConstrainedPart(priced).hessian(rates),
            _modulus(priced, rates),
            _excess(best, program, certificate),
            math.inf if certificate.distance is None else certificate.distance,
        )

    def reach(self, beta: float, variances: Array, lengths: float = 1.0) -> Array:
        """How far ⟨ℓ, V⟩ can be from ⟨ℓ, W⟩, for ⟨ℓ, H⁻¹ℓ⟩ and ‖ℓ‖."""
        widths: Array = np.sqrt((beta + self.excess) * variances)
        return widths + self._slack(variances, lengths)

    def price(self, sizes: Array, variances: Array, lengths: float = 1.0) -> Array:
        """The least β for which ⟨ℓ, V⟩ can be zero, where |⟨ℓ, W⟩| has these sizes.

        Infinite for a form that no V changes, unless it is zero already.
        """
        left = np.maximum(sizes - self._slack(variances, lengths), 0.0)
        never = np.where(left > 0.0, np.inf, 0.0)
        prices = np.divide(left**2, variances, out=never, where=variances > 0.0)
        return np.asarray(np.maximum(prices - self.excess, 0.0))

    def _slack(self, variances: Array, lengths: float) -> Array:
        """How far ⟨ℓ, W*⟩ can be from ⟨ℓ, W⟩."""
        return np.minimum(self.distance * lengths, np.sqrt(self.excess * variances))


def _priced(best: Explanation, program: Program) -> Program:
    """All losses, those of bounds beside the others: what the Lagrangian weighs.

    What rows add up to stays a constraint.
    """
    kept = tuple(bound for bound in program.bounds if is_complete(bound))
    rest = tuple(bound.loss for bound in program.bounds if bound not in kept)
    losses = (*program.losses, *rest)
    if not all(math.isfinite(best.rates.get(loss.name, 0.0)) for loss in losses):
        raise Refused(
            "certain: a limit of zero leaves a part of all explanations alone, and "
            "what is near an optimum there is not known; use a small limit or a weight"
        )
    return Program(losses, kept, program.shape)


def _modulus(program: Program, rates: Array) -> float:
    """Σ of the weights of squared losses of W itself."""
    pairs = zip(rates.tolist(), program.losses, strict=True)
    own = (c for c, loss in pairs if isinstance(loss.map, Identity) and _squared(loss))
    return math.fsum(own)


def _squared(loss: PropertyLoss) -> bool:
    return isinstance(loss.penalty, Squared)


def _excess(best: Explanation, program: Program, certificate: Certificate) -> float:
    """e: of F and of the Lagrangian F + Σ μ (loss − limit), over what is the least."""
    above = max(math.fsum(_slacks(best, program)), 0.0)
    return max(certificate.value + above - certificate.lower_bound, 0.0)


def _slacks(best: Explanation, program: Program) -> Iterable[float]:
    for bound in program.bounds:
        if is_complete(bound):
            continue
        name = bound.loss.name
        yield best.multipliers.get(name, 0.0) * (best.losses[name] - bound.limit)

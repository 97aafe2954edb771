"""Attributions that are computed when they are first read.

A curve knows the losses of hundreds of optima without one attribution. Each is an
explanation whose attributions are a :class:`Deferred`, until somebody reads them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from propopt._typing import Attributions
from propopt.certificate import Certificate
from propopt.errors import UncertifiedWarning


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


_PROVED = ("attributions", "losses", "certificate", "details", "target")
"""What an explanation takes over from the one that was computed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Deferred:
    """Attributions (N, D) to be computed.

    Parameters
    ----------
    shape : (int, int)
        N and D.
    compute : callable
        Gives the explanation, with losses and certificate of its own attributions.
    tolerance : float
        By how much, relatively, what is claimed of them may err without a warning.
    """

    shape: tuple[int, int]
    compute: Callable[[], Explanation]
    tolerance: float

    def proved(self, claim: Certificate | None) -> dict[str, Any]:
        """The fields of an explanation that follow from its attributions.

        A warning says so if they contradict the claim.
        """
        best = self.compute()
        if claim is not None and best.certificate is not None:
            self._compare(claim, best.certificate, best.solver)
        fields = vars(best)  # some may be computed later
        return {name: fields[name] for name in _PROVED}

    def _compare(
        self, claim: Certificate, proof: Certificate, solver: str | None
    ) -> None:
        too_high = claim.lower_bound - proof.value
        too_low = proof.lower_bound - (2.0 * claim.value - claim.lower_bound)
        if max(too_high, too_low) > self.tolerance * proof.scale:
            warnings.warn(
                f"the curve of {solver} has an objective of {claim.value:.9g} to a "
                f"gap of {claim.gap:.1e}, and its attributions have "
                f"{proof.value:.9g} to a gap of {proof.gap:.1e}: these losses count",
                UncertifiedWarning,
                stacklevel=4,
            )


def is_deferred(explanation: Explanation) -> bool:
    """Whether nobody has read its attributions yet."""
    return isinstance(vars(explanation)["attributions"], Deferred)


class WhenRead:
    """The field of an explanation that holds attributions, or a :class:`Deferred`.

    As a field of a dataclass it has no default: it is asked of the class, and refuses.
    """

    def __get__(self, owner: Any, kind: type | None = None) -> Attributions:
        if owner is None:
            raise AttributeError("attributions")
        fields = vars(owner)
        if isinstance(fields["attributions"], Deferred):
            fields.update(fields["attributions"].proved(fields["certificate"]))
        W: Attributions = fields["attributions"]
        return W

    def __set__(self, owner: Any, W: Attributions | Deferred) -> None:
        vars(owner)["attributions"] = W

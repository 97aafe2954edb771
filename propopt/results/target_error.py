"""How far an explanation is from the one for the true target: an estimate's error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, kw_only=True)
class TargetError:
    """What the error of an estimated target costs, beside what a certificate proves.

    A certificate says how good W is for the target it was given, Ĝ. For the true
    target G the excess F_G(W(Ĝ)) − F_G* is estimated from blocks of draws.

    Parameters
    ----------
    value : float
        The excess, in units of the objective; 0 for an exact target, NaN where it is
        not known.
    scale : float
        What it is relative to: the objective.
    spread : float
        The standard error of ``value``; NaN where it is not known.
    source : str
        How the target was made, in words.

    Examples
    --------
    >>> from propopt.results.target_error import TargetError
    >>> TargetError(value=0.0, scale=2.0, spread=0.0, source="exact (boxes)").in_words()
    'target exact (boxes)'
    """

    value: float
    scale: float
    spread: float
    source: str

    @property
    def relative(self) -> float:
        """``value / scale``; NaN where it is not known."""
        return self.value / self.scale if self.value else self.value

    def in_words(self) -> str:
        """What stands beside a gap."""
        if math.isnan(self.value):
            return f"target error not known ({self.source})"
        if self.value == 0.0:
            return f"target {self.source}"
        spread = self.spread / self.scale
        return f"target error {self.relative:.2g} ± {spread:.1g} ({self.source})"

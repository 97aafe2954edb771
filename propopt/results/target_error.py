"""How far an explanation is from the one for the true target: an estimate's error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from propopt.curvature.excess import Excess
from propopt.output.gaps import percent


Relation: TypeAlias = Literal["about", "at most"]
"""What the value says of the excess."""


@final
@dataclass(frozen=True, kw_only=True)
class TargetError:
    """What the error of an estimated target costs, beside what a certificate proves.

    A certificate says how good W is for the target it was given, Ĝ. For the true
    target G the excess F_G(W(Ĝ)) − F_G* is estimated from blocks of draws
    (:mod:`propopt.curvature.excess`).

    Parameters
    ----------
    value : float
        The excess that is to be expected, in units of the objective; 0 for an exact
        target, NaN where it is not known.
    scale : float
        What it is relative to: that of the gap.
    spread : float
        The standard error of ``value`` over the blocks; NaN where it is not known.
    source : str
        How the target was made, in words.
    degrees : float
        The excess of one estimate varies about its expectation as χ²_ν/ν; NaN where it
        is not known.
    n_blocks : int
        Blocks of draws that it was estimated from; 0 if not from blocks.
    relation : {"about", "at most"}
        ``"at most"`` where the objective is not quadratic, or there are bounds.

    Examples
    --------
    >>> from propopt.results.target_error import TargetError, exact_target
    >>> exact_target("exact (boxes)", scale=2.0).in_words()
    'target exact (boxes)'
    >>> TargetError(
    ...     value=0.04,
    ...     scale=2.0,
    ...     spread=0.005,
    ...     source="500 draws",
    ...     degrees=20.0,
    ...     n_blocks=10,
    ... ).in_words()
    'target error 2 % (0.94–3.6 %; 500 draws)'
    """

    value: float
    scale: float
    spread: float
    source: str
    degrees: float = math.nan
    n_blocks: int = 0
    relation: Relation = "about"

    @property
    def relative(self) -> float:
        """``value/scale``; NaN where it is not known."""
        return self._share(self.value)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the relative excess lies with a probability of 95 %.

        By quantiles of excess/``value`` ~ F(ν, (B − 1)ν). From zero on where the value
        is an upper bound.
        """
        if not self.n_blocks:
            return self.relative, self.relative
        low, high = self._excess.interval
        return (self._share(low) if self.relation == "about" else 0.0), self._share(
            high
        )

    def draws_for(self, precision: float, n_draws: int) -> int:
        """Draws after which the relative error is to be expected at ``precision``.

        Parameters
        ----------
        precision : float
            The relative error that is wanted.
        n_draws : int
            Draws behind this estimate. The error falls as 1/n_draws.
        """
        if not self.relative > precision:
            return n_draws
        return math.ceil(n_draws * self.relative / precision)

    def in_words(self) -> str:
        """What stands beside a gap."""
        if not self.n_blocks:
            return f"target {self.source}"
        low, high = (percent(bound) for bound in self.interval)
        if self.relation == "at most":
            error = f"at most {percent(self.relative)} % (up to {high} %"
        else:
            error = f"{percent(self.relative)} % ({low}–{high} %"
        return f"target error {error}; {self.source})"

    def _share(self, excess: float) -> float:
        """Of the scale; infinite beside an objective of zero."""
        if self.scale:
            return excess / self.scale
        return math.inf if excess > 0.0 else excess

    @property
    def _excess(self) -> Excess:
        return Excess(
            value=self.value,
            spread=self.spread,
            degrees=self.degrees,
            n_blocks=self.n_blocks,
        )


def exact_target(source: str, scale: float) -> TargetError:
    """The error of a target that has none."""
    return TargetError(value=0.0, scale=scale, spread=0.0, source=source)


def unknown_target(source: str, scale: float) -> TargetError:
    """The error of a target of which it is not known."""
    return TargetError(value=math.nan, scale=scale, spread=math.nan, source=source)

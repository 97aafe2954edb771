"""The gradient itself as an explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from propopt.explainers.base import Baseline, Findings
from propopt.explainers.request import Request


@dataclass(frozen=True, kw_only=True)
class Gradient(Baseline):
    """The gradient at each point: w_n = ∇f(x_n).

    The most faithful of all explanations under
    :class:`~propopt.losses.GradientMatching`, whose loss it makes zero.

    Examples
    --------
    >>> from propopt.functions import Sine
    >>> Gradient().explain(Sine(), [[0.0, 0.0]]).attributions
    array([[1., 1.]])
    """

    method: ClassVar[str] = "gradient"

    def _findings(self, request: Request) -> Findings:
        return Findings(attributions=request.gradient(request.points))

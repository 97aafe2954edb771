"""What SmoothGrad's δ controls, by exact limits: no draws and no noise.

SmoothGrad tends to a closed form for five of the functions, and LIME with an intercept
to the same. Losses of these limits over δ show what δ controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Chart, Study, draw_charts
from papers.properties.curves import Curves
from papers.properties.limits import LIMITS
from papers.properties.setups import FUNCTIONS, PROBLEM_FILES
from propopt.base.arrays import Array
from propopt.losses import FunctionMatching, PropertyLoss, Smoothness
from propopt.losses.graphs import chain_graph
from propopt.problems import read_problem


_SCALES = np.linspace(0.0, 3.0, 31)
"""δ, up to the paper's largest."""
_GRADIENT, _VALUES = (
    "faithfulness, gradient matching",
    "faithfulness, function matching",
)
_ROBUST, _SMOOTH = "robustness", "smoothness"
_SAME = 1e-9
"""Rounding of a ratio of losses."""


def figure_of_trends() -> PaperFigure:
    """Five functions, and what differs between formalizations."""
    return PaperFigure(
        title="What δ controls, without noise",
        about=_ABOUT,
        panels=(
            *(
                Study(
                    column=FUNCTIONS[function],
                    measure=partial(trends, function),
                    statements=(
                        faithfulness_rises,
                        robustness_is_not_controlled,
                        smoothness_is_not_optimized,
                    ),
                    charts=_charts,
                    numbers=_numbers,
                )
                for function in LIMITS
            ),
            Study(
                column="all five",
                measure=every_trend,
                statements=(changes_with_formalization,),
                charts=lambda _: (),
            ),
        ),
        draw=partial(draw_charts, size=(4.4, 2.9), columns=3),
    )


_ABOUT = """\
Losses of SmoothGrad with infinitely many draws, over δ, as shares of those of the
gradient (faithfulness by gradient matching: of its largest). LIME with an intercept has
the same limit. Points and precision are those of the authors' scripts (the first 100
points of a 5 × 5 × 5 grid); smoothness compares neighbouring inputs. sin(eˣ) has no
closed form and is left out."""


@dataclass(frozen=True, eq=False)
class Trends:
    """Losses of SmoothGrad's limits by δ.

    Parameters
    ----------
    function : str
        Its name in those of problem files.
    """

    function: str

    @cached_property
    def losses(self) -> dict[str, Array]:
        """Each loss (K,) at each δ, by what it measures."""
        problem = read_problem(
            PROBLEM_FILES.path(f"fig1_{self.function}_authors")
        ).build()
        X = np.asarray(problem.points, float)
        gradient, robustness = problem.objective.losses
        values = np.asarray(problem.function.value(X))
        kinds: dict[str, PropertyLoss] = {
            _GRADIENT: gradient,
            _VALUES: FunctionMatching(X, values),
            _ROBUST: robustness,
            _SMOOTH: Smoothness(chain_graph(X.shape[1])),
        }
        limit = LIMITS[self.function]
        return {
            name: np.array([loss.value(limit(X, float(δ))) for δ in _SCALES])
            for name, loss in kinds.items()
        }

    def change(self, loss: str) -> float:
        """The loss at the largest δ over that at the smallest."""
        return float(self.losses[loss][-1] / self.losses[loss][0])


def trends(function: str) -> Trends:
    """The losses of one function."""
    return Trends(function)


def every_trend() -> tuple[Trends, ...]:
    """Those of all functions."""
    return tuple(map(Trends, LIMITS))


def faithfulness_rises(own: Trends) -> Claim:
    """Each step of δ makes it less faithful."""
    values = own.losses[_GRADIENT][1:]
    return Claim(
        statement="baselines follow a trend, less faithful by the gradient as δ grows: "
        "least ratio of the loss at one δ to that at the next smaller one",
        value=float((values[1:] / values[:-1]).min()),
        sense=">=",
        limit=1.0 - _SAME,
    )


def robustness_is_not_controlled(own: Trends) -> Claim:
    """It would be, if it fell as δ grows."""
    return Claim(
        statement="δ controls no property: the robustness loss of SmoothGrad does not "
        "fall as δ grows: its ratio, δ = 3 to δ = 0",
        value=own.change(_ROBUST),
        sense=">=",
        limit=1.0 - _SAME,
    )


def smoothness_is_not_optimized(own: Trends) -> Claim:
    """It would be encouraged, if it fell as δ grows."""
    return Claim(
        statement="SmoothGrad never optimizes smoothness: its smoothness loss does not "
        "fall as δ grows: its ratio, δ = 3 to δ = 0",
        value=own.change(_SMOOTH),
        sense=">=",
        limit=1.0 - _SAME,
    )


def changes_with_formalization(every: Sequence[Trends]) -> Claim:
    """Function matching prefers a larger δ where gradient matching prefers a smaller.

    Gradient matching is zero at δ = 0 and positive beyond.
    """
    other = [FUNCTIONS[own.function] for own in every if own.change(_VALUES) < 1.0]
    return Claim(
        statement="the trend changes with the formalization: functions with less loss "
        "of function matching at δ = 3 than at δ = 0, while that of gradient matching "
        "rises",
        value=float(len(other)),
        sense=">=",
        limit=1.0,
        note=", ".join(other),
    )


def _charts(own: Trends) -> Sequence[Chart]:
    last = {_GRADIENT: own.losses[_GRADIENT][-1]}
    curves = {
        name: np.stack([_SCALES, values / last.get(name, values[0])])[:, 1:]
        for name, values in own.losses.items()
    }
    return (
        Curves(
            title=FUNCTIONS[own.function],
            x_label="δ",
            y_label="share of the loss",
            curves=curves,
        ),
    )


def _numbers(own: Trends) -> pd.DataFrame:
    shown = [0, 5, 10, 20, 30]
    rows = {
        name: {f"δ = {_SCALES[k]:g}": float(values[k]) for k in shown}
        for name, values in own.losses.items()
    }
    return pd.DataFrame(rows).T.reset_index(names="loss")

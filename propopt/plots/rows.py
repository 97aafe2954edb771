"""Attributions of one row: bars, or steps from the base to the prediction."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.checks import read_count
from propopt.output.text import drawn
from propopt.plots.axes import LOWERS, OTHERS, RAISES, framed, given_or_new
from propopt.plots.doubt import (
    HATCH,
    CertainSigns,
    opacities,
    say_hatching,
    uncertain,
    whiskers,
)
from propopt.plots.naming import largest, names_with_values, title_of, units_label
from propopt.results.explanation import Explanation
from propopt.results.foreign import AttributionsLike, explanation_of


def plot_row(
    explanation: AttributionsLike,
    row: Hashable,
    *,
    X: object = None,
    n_features: int = 10,
    certain: CertainSigns | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the attributions of one row as bars, the largest on top.

    Features beyond the first ``n_features`` share one bar, the sum of theirs. Where
    standard errors are known, whiskers reach two of them to each side, and bars that
    are smaller than that are faded.

    Parts of the output that come with their base, ``details["base_value"]``, are drawn
    as steps: from the base, at the bottom, to the base and all contributions, which is
    the prediction where they add up to it. Slopes never are: they do not add up.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        W (N, D).
    row : label or int
        The row's name in the index of the inputs; its position where they had none.
    X : array or DataFrame (N, D), optional
        The inputs, to write the value of each feature beside its name; those with names
        are put in the order of the explanation.
    n_features : int
        How many features have a bar of their own.
    certain : Certain, optional
        What ``explanation.certain()`` returned: bars whose sign is not certain are
        hatched.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row, or X has another shape than the attributions.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.array([[3.0, -1.0, 0.5]])))
    >>> [float(bar.get_width()) for bar in po.plots.plot_row(best, 0).patches]
    [3.0, -1.0, 0.5]
    """
    result = explanation_of(explanation, "given")
    place = result.labels.position(row, len(result.attributions))
    doubtful = uncertain(certain, result.shape)[place]
    names = names_with_values(result, X, place)
    bars = _Bars.of(
        result, place, names, doubtful, read_count(n_features, "n_features")
    )
    axes = given_or_new(ax, 5.6, 1.1 + 0.28 * len(bars.widths))
    bars.draw(axes, _base(result, place))
    axes.set_yticks(np.arange(len(bars.widths)), [drawn(name) for name in bars.names])
    axes.invert_yaxis()
    axes.set(xlabel=units_label(result), title=title_of(result, f"row {row}"))
    say_hatching(axes, bool(bars.doubtful.any()))
    return framed(axes)


def _base(result: Explanation, place: int) -> float | None:
    """Where contributions start; None for slopes, and where it is not known."""
    known = result.units == "output" and "base_value" in result.details
    return float(result.details["base_value"][place]) if known else None


@final
@dataclass(frozen=True, eq=False)
class _Bars:
    """The bars of one row, from the top down."""

    names: list[str]
    widths: Array
    errors: Array | None
    doubtful: NDArray[np.bool_]
    n_others: int

    @classmethod
    def of(
        cls,
        result: Explanation,
        place: int,
        names: list[str],
        doubtful: NDArray[np.bool_],
        count: int,
    ) -> _Bars:
        """The largest, and one for the sum of the others, whose error is not known."""
        w, errors = result.attributions[place], result.standard_errors
        order = largest(w, count)
        rest = np.delete(w, order)
        own = cls(
            names=[names[j] for j in order],
            widths=w[order],
            errors=None if errors is None else errors[place, order],
            doubtful=doubtful[order],
            n_others=0,
        )
        return own if rest.size == 0 else own._and_the(rest)

    def _and_the(self, rest: Array) -> _Bars:
        """One more bar."""
        errors = self.errors
        return _Bars(
            names=[*self.names, f"{rest.size} others"],
            widths=np.append(self.widths, rest.sum()),
            errors=None if errors is None else np.append(errors, np.nan),
            doubtful=np.append(self.doubtful, False),
            n_others=1,
        )

    def draw(self, axes: Axes, base: float | None) -> None:
        """From zero; or each from the end of the one below, the lowest from a base."""
        starts = np.zeros(len(self.widths))
        axes.use_sticky_edges = False  # steps have room on both sides
        if base is not None:
            # the largest step ends at the prediction, at the top
            starts = base + np.cumsum(self.widths[::-1])[::-1] - self.widths
        axes.barh(
            np.arange(len(self.widths)),
            self.widths,
            left=starts,
            height=0.7,
            color=self._colours(),
        )
        seen = opacities(self.widths, self.errors)
        for place, bar in enumerate(axes.patches[-len(self.widths) :]):
            bar.set_alpha(float(seen[place]))
            if self.doubtful[place]:
                bar.set(hatch=HATCH, edgecolor="white")
        whiskers(axes, starts + self.widths, self.errors)
        if base is None:
            axes.axvline(0.0, color="0.3", linewidth=0.8)
        else:
            self._mark_ends(axes, base)

    def _mark_ends(self, axes: Axes, base: float) -> None:
        end = base + float(self.widths.sum())
        axes.axvline(base, color="0.55", linewidth=0.8, linestyle=":")
        axes.axvline(end, color="0.3", linewidth=0.8)
        last = len(self.widths) - 0.45
        axes.annotate(
            f"base {base:.4g}",
            (base, last),
            fontsize="small",
            ha="center",
            va="top",
            annotation_clip=False,
        )
        axes.annotate(
            f"prediction {end:.4g}",
            (end, -0.55),
            fontsize="small",
            ha="center",
            va="bottom",
            annotation_clip=False,
        )
        axes.set_ylim(-0.9, last + 0.35)

    def _colours(self) -> list[str]:
        own = self.widths[: len(self.widths) - self.n_others]
        colours = [RAISES if width >= 0 else LOWERS for width in own]
        return colours + [OTHERS] * self.n_others

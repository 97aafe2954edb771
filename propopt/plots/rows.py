"""Attributions of one row: bars, or steps from the base to the prediction."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.checks import read_count
from propopt.errors import InvalidInput
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
    row: Hashable = None,
    *,
    X: object = None,
    n_features: int = 10,
    certain: CertainSigns | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the attributions of one row as bars with their numbers, the largest on top.

    Features beyond the first ``n_features`` share one bar, the sum of theirs. Where
    standard errors are known, whiskers reach two of them to each side, and bars that
    are smaller than that are faded.

    Parts of the output that come with their base, ``details["base_value"]``, are drawn
    as steps: from the base, at the bottom, to the base and all contributions, which is
    the prediction where they add up to it. The axis then has the output itself, such
    as a probability. Slopes are drawn from zero: they do not add up, and no step of
    theirs ends at a prediction; ``units="output"`` of :func:`propopt.explain` and
    :class:`propopt.Explainer` gives parts that do.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        W (N, D).
    row : label or int, optional
        The row's name in the index of the inputs; its position where they had none.
        Not needed where there is one row.
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
        If there is no such row, or none is named and there are several; or X has
        another shape than the attributions.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.array([[3.0, -1.0, 0.5]])))
    >>> [float(bar.get_width()) for bar in po.plots.plot_row(best, 0).patches]
    [3.0, -1.0, 0.5]
    """
    result = explanation_of(explanation, "given")
    row, place = _row_of(result, row)
    doubtful = uncertain(certain, result.shape)[place]
    names = names_with_values(result, X, place)
    bars = _Bars.of(
        result, place, names, doubtful, read_count(n_features, "n_features")
    )
    axes = given_or_new(ax, 6.4, 1.3 + 0.3 * len(bars.widths))
    base = _base(result, place)
    bars.draw(axes, base)
    axes.set_yticks(np.arange(len(bars.widths)), [drawn(name) for name in bars.names])
    axes.invert_yaxis()
    axes.set(xlabel=_axis(result, base), title=title_of(result, f"row {row}"))
    say_hatching(axes, bool(bars.doubtful.any()))
    framed(axes)
    axes.grid(False, axis="y")  # bars have names
    return axes


def _row_of(result: Explanation, row: Hashable) -> tuple[Hashable, int]:
    """The name and the place of a row; of the only one where none is named."""
    names, count = result.labels.points, len(result.attributions)
    if row is None and (names is None or None not in names):
        if count > 1:
            first = 0 if names is None else names[0]
            raise InvalidInput(
                f"row: there are {count} rows; name one, such as {first!r}"
            )
        row = 0 if names is None else names[0]
    return row, result.labels.position(row, count)


def _axis(result: Explanation, base: float | None) -> str:
    """What is along the axis: the output itself, or what attributions are."""
    if base is None:
        return units_label(result)
    return "output" if result.quantity is None else drawn(result.quantity.in_words())


def _base(result: Explanation, place: int) -> float | None:
    """Where contributions start; None for slopes, and where it is not known."""
    known = result.units == "output" and "base_value" in result.details
    return float(result.details["base_value"][place]) if known else None


_ROOM: Final = 0.16
"""Beside the bars, for their numbers, of what they span."""


def _signed(width: float, digits: int) -> str:
    """A number with its sign, to so many digits after the point; 0 what rounds to it.

    Very small and very large ones by powers of ten.
    """
    if width and not -6 <= digits <= 6:
        return f"{width:+.2e}".replace("-", "−")
    places = max(digits, 0)
    rounded = round(width, places)
    return f"{rounded:+,.{places}f}".replace("-", "−") if rounded else "0"


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
        self._write_numbers(axes, starts)
        if base is None:
            axes.axvline(0.0, color="0.3", linewidth=0.8)
        else:
            self._mark_ends(axes, base)

    def _write_numbers(self, axes: Axes, starts: Array) -> None:
        """Each width beside the end of its bar, all to the digits of the largest."""
        largest_width = float(np.abs(self.widths).max(initial=0.0))
        digits = 2 - math.floor(math.log10(largest_width)) if largest_width else 0
        errors = np.zeros(len(self.widths)) if self.errors is None else self.errors
        ends = starts + self.widths
        reach = 2.0 * np.nan_to_num(errors)
        for place, width in enumerate(self.widths.tolist()):
            side = -1.0 if width < 0.0 else 1.0
            axes.annotate(
                _signed(width, digits),
                (float(ends[place] + side * reach[place]), place),
                xytext=(4.0 * side, 0.0),
                textcoords="offset points",
                fontsize="small",
                ha="right" if side < 0.0 else "left",
                va="center",
                annotation_clip=False,
                bbox={"facecolor": axes.get_facecolor(), "linewidth": 0.0, "pad": 0.8},
            )
        edges = np.concatenate([starts, ends, ends + reach, ends - reach])
        low, high = float(edges.min()), float(edges.max())
        room = _ROOM * ((high - low) or 1.0)
        left = low - (room if (self.widths < 0.0).any() else 0.3 * room)
        axes.set_xlim(left, high + (room if (self.widths >= 0.0).any() else 0.3 * room))

    def _mark_ends(self, axes: Axes, base: float) -> None:
        end = base + float(self.widths.sum())
        ends = base + np.cumsum(self.widths[::-1])[::-1]
        for place in range(len(self.widths) - 1):  # from the step below to this one
            axes.plot(
                [ends[place + 1]] * 2,
                [place + 0.35, place + 0.65],
                color="0.4",
                linewidth=0.8,
            )
        axes.axvline(base, color="0.55", linewidth=0.8, linestyle=":")
        axes.axvline(end, color="0.3", linewidth=0.8)
        last = len(self.widths) - 0.5
        inwards = "left" if base <= end else "right"
        outwards = "left" if base >= end else "right"
        for x, y, text, ha in (
            (base, last + 0.15, f"base {base:.4g}", inwards),
            (end, -0.7, f"prediction {end:.4g}", outwards),
        ):
            axes.annotate(
                text,
                (x, y),
                xytext=(4.0 if ha == "left" else -4.0, 0.0),
                textcoords="offset points",
                fontsize="small",
                ha=ha,
                va="center",
                annotation_clip=False,
            )
        axes.set_ylim(-0.9, last + 0.35)

    def _colours(self) -> list[str]:
        own = self.widths[: len(self.widths) - self.n_others]
        colours = [RAISES if width >= 0 else LOWERS for width in own]
        return colours + [OTHERS] * self.n_others

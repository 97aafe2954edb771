"""What is drawn of doubt: whiskers, faded bars, hatching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput


FADED: Final = 0.35
"""Opacity of bars below two standard errors."""
HATCH: Final = "////"
_BEHIND: Final = "0.35"


class CertainSigns(Protocol):
    """What holds in every explanation that is almost optimal."""

    @property
    def signs(self) -> NDArray[np.int8]:
        """+1 or −1 where the sign is certain, else 0, shape (N, D)."""


def uncertain(
    certain: CertainSigns | None, shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """True where a sign is not certain; nowhere where nobody asked.

    Raises
    ------
    InvalidInput
        If the signs are of other attributions.
    """
    if certain is None:
        return np.zeros(shape, dtype=bool)
    signs = np.asarray(certain.signs)
    if signs.shape != shape:
        raise InvalidInput(
            f"certain: expected signs of shape {shape}, got {signs.shape}; give what "
            "certain() of this explanation returned"
        )
    return signs == 0


def whiskers(axes: Axes, widths: Array, errors: Array | None) -> None:
    """Two standard errors on each side of the ends of bars, where they are known."""
    if errors is None or not errors.any():
        return
    axes.errorbar(
        widths,
        np.arange(len(widths)),
        xerr=2.0 * errors,
        fmt="none",
        ecolor="0.25",
        elinewidth=0.9,
        capsize=2.0,
        zorder=4,
    )


def opacities(widths: Array, errors: Array | None) -> Array:
    """Faded below two standard errors."""
    if errors is None:
        return np.ones(len(widths))
    return np.where(np.abs(widths) < 2.0 * errors, FADED, 1.0)


def hatch_cells(axes: Axes, doubtful: NDArray[np.bool_]) -> None:
    """Hatch the cells of a heat map, (features, rows), one patch for each run."""
    for feature, start, stop in _runs(doubtful):
        axes.add_patch(
            Rectangle(
                (start - 0.5, feature - 0.5),
                stop - start,
                1.0,
                fill=False,
                hatch=HATCH,
                edgecolor=_BEHIND,
                linewidth=0.0,
            )
        )


def say_hatching(axes: Axes, anywhere: bool) -> None:
    """Say below the picture what hatching means, where there is any."""
    if anywhere:
        axes.set_xlabel(f"{axes.get_xlabel()}\nhatched: sign not certain")


def _runs(doubtful: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """Each feature, and where its runs of True start and stop."""
    edges = np.diff(np.pad(doubtful.astype(int), ((0, 0), (1, 1))), axis=1)
    starts, stops = np.argwhere(edges == 1), np.argwhere(edges == -1)
    for (feature, start), (_, stop) in zip(starts, stops, strict=True):
        yield int(feature), int(start), int(stop)

"""Methods of an explanation about what is beside a row: bins, cells, kernel widths."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from propopt.errors import InvalidInput, Refused
from propopt.lime.paths import BandwidthPath, bandwidth_path
from propopt.lime.views.cells import RowCells, cell_coefficients
from propopt.lime.views.profile import RowProfile


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


def profile_of_row(
    explanation: LimeExplanation, row: Hashable | None = None
) -> RowProfile:
    """Means of f over the bins of each column, all else as for this row.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default
        the first.

    Raises
    ------
    Refused
        If the explanation was loaded.
    """
    n, subject = explanation.position(row), explanation.asked("profile")
    law, point = subject.law, subject.points[[n]]
    columns = range(explanation.shape[1])
    return RowProfile(
        features=explanation.labels.feature_names(explanation.shape[1]),
        bins=tuple(tuple(column.bins) for column in law.columns),
        means=tuple(means[0] for means in subject.profiles(point)),
        own=np.array([law.columns[j].place(point[:, j])[0] for j in columns]),
        mean=float(explanation.mean[n]),
    )


def cells_of_row(
    explanation: LimeExplanation,
    first: str | int,
    second: str | int,
    row: Hashable | None = None,
) -> RowCells:
    """Coefficients of two columns in each cell of their bins.

    Parameters
    ----------
    first, second : str or int
        The columns, by name or position.
    row : label or int, optional
        What the other columns are; by default the first row.

    Raises
    ------
    InvalidInput
        If there is no such column, or both are one.
    Refused
        If the explanation was loaded.
    """
    n, subject = explanation.position(row), explanation.asked("cells_of")
    pair = explanation.column(first), explanation.column(second)
    if pair[0] == pair[1]:
        raise InvalidInput("cells_of: expected two columns, got one twice")
    names = explanation.labels.feature_names(explanation.shape[1])
    law, point = subject.law, subject.points[[n]]
    one, other = (law.columns[j] for j in pair)
    return RowCells(
        features=(names[pair[0]], names[pair[1]]),
        bins=(tuple(one.bins), tuple(other.bins)),
        coefficients=cell_coefficients(subject.limits, law, point, pair),
        own=(
            int(one.place(point[:, pair[0]])[0]),
            int(other.place(point[:, pair[1]])[0]),
        ),
    )


def path_of_row(
    explanation: LimeExplanation,
    row: Hashable | None = None,
    widths: ArrayLike | None = None,
) -> BandwidthPath:
    """Coefficients of a row at many kernel widths, exact at each.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default
        the first.
    widths : array (M,), optional
        Kernel widths; by default 50 around that of the law.

    Raises
    ------
    Refused
        If coefficients are estimated, or the explanation was loaded.
    """
    subject = explanation.asked("path")
    if subject.exact is None:
        raise Refused(f"path: coefficients are estimated, as {explanation.reason}")
    return bandwidth_path(
        subject.exact, subject.points[explanation.position(row)], widths
    )

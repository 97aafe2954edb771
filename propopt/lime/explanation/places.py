"""Methods of an explanation that find a row, a column, the model behind it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from propopt._typing import Positions
from propopt.checks import did_you_mean
from propopt.errors import InvalidInput, Refused
from propopt.lime.explanation.subject import LimeSubject
from propopt.tables.names import Labels, listed


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


def place_of_column(explanation: LimeExplanation, feature: str | int) -> int:
    """Where a column stands, by its name or its position.

    Parameters
    ----------
    feature : str or int
        The column.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    names = explanation.labels.feature_names(explanation.shape[1])
    if feature in names:
        return names.index(str(feature))
    if isinstance(feature, int) and 0 <= feature < len(names):
        return feature
    raise InvalidInput(
        f"feature: there is no column {feature!r}"
        f"{did_you_mean(feature, names)}; there are {listed(names)}"
    )


class RowLimits(Protocol):
    """Limits at N rows of a table, or documents, that may have names."""

    @property
    def labels(self) -> Labels:
        """Names of the rows and of the columns, or words."""

    @property
    def shape(self) -> tuple[int, int]:
        """N, and the number of columns or words."""

    @property
    def n_samples(self) -> int:
        """Of one run of LIME."""


def place_of_row(explanation: RowLimits, row: Hashable | None = None) -> int:
    """Where a row, or document, stands; the first by default.

    Parameters
    ----------
    row : label or int, optional
        Its name in the index of X, or its position where X had no names.

    Raises
    ------
    InvalidInput
        If there is none.
    """
    if row is None:
        return 0
    return explanation.labels.position(row, explanation.shape[0])


def places_of_rows(explanation: RowLimits, rows: Sequence[Hashable]) -> Positions:
    """Where some rows, or documents, stand, (n,).

    Parameters
    ----------
    explanation : RowLimits
        Of them.
    rows : sequence of labels or int
        Their names, or positions where they had none.

    Raises
    ------
    InvalidInput
        If there is no such row, or no row is asked for.
    """
    if isinstance(rows, str) or len(rows) == 0:
        raise InvalidInput(f"rows: expected names of rows in a list, got {rows!r}")
    return np.array([place_of_row(explanation, row) for row in rows], np.intp)


def explanation_of_rows(
    explanation: LimeExplanation, rows: Sequence[Hashable]
) -> LimeExplanation:
    """The same of some rows alone; nothing is computed.

    Parameters
    ----------
    rows : sequence of labels or int
        Their names in the index of X, or positions where X had no names.

    Raises
    ------
    InvalidInput
        If there is no such row, or no row is asked for.
    """
    places = places_of_rows(explanation, rows)
    N, names = len(explanation.coefficients), explanation.labels
    if names.points is None and not np.array_equal(places, np.arange(N)):
        # rows without names keep their numbers
        names = replace(names, points=tuple(range(N)))
    of_rows = {
        name: part[places]
        for name, part in vars(explanation).items()
        if name in _BY_ROWS and part is not None
    }
    subject = explanation.subject
    scatter = vars(explanation).get("runs", explanation.scatter)
    return replace(
        explanation,
        **of_rows,
        cells=tuple(explanation.cells[n] for n in places),
        bins=tuple(explanation.bins[n] for n in places),
        labels=names.of_positions(places),
        scatter=None if scatter is None else scatter.of_rows(places),
        subject=None if subject is None else subject.of_rows(places),
    )


_BY_ROWS = (
    "coefficients",
    "intercept",
    "standard_errors",
    "alpha",
    "log_weight",
    "effective_share",
    "values",
    "points",
)


def asked_subject(explanation: LimeExplanation, what: str) -> LimeSubject:
    """The model and the law.

    Parameters
    ----------
    what : str
        What they are needed for.

    Raises
    ------
    Refused
        If the explanation was loaded.
    """
    if explanation.subject is None:
        raise Refused(
            f"{what}: the model and the law are not saved with an explanation; "
            "make it anew with propopt.lime.limits"
        )
    return explanation.subject

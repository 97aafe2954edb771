"""The columns a model was fitted on, and the tables it is given."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.structures.pipelines import first_step
from propopt.tables.names import Labels, listed


@dataclass(frozen=True)
class FittedColumns:
    """The columns that an estimator was fitted on.

    Parameters
    ----------
    names : tuple of str or None
        Their names; None for a model fitted on an array.
    count : int or None
        Their number; None where the model does not tell.
    """

    names: tuple[str, ...] | None
    count: int | None

    @classmethod
    def of(cls, model: Any) -> FittedColumns:
        """What ``model`` remembers of the table that it was fitted on."""
        entry = first_step(model)
        names = getattr(entry, "feature_names_in_", None)
        count = getattr(entry, "n_features_in_", None)
        return cls(
            names=None if names is None else tuple(str(name) for name in names),
            count=None if count is None else int(count),
        )

    def check(self, points: Points, labels: Labels) -> None:
        """Refuse a table that has other columns."""
        if self.names is not None and labels.features is not None:
            _check_names(_as_kept(labels.features, self.names), self.names, "X")
        _check_count(points.shape[1], self.count, "X")

    def table(self, points: Points, labels: Labels) -> Array | pd.DataFrame:
        """A table that the model takes without complaint."""
        self.check(points, labels)
        own = np.array(points)  # a model may write into what it is given
        return own if self.names is None else pd.DataFrame(own, columns=self.names)


def _as_kept(got: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of X as LightGBM keeps them, if the model has kept them so.

    It writes an underscore for each blank, and refuses two columns of one name.
    """
    kept = tuple(name.replace(" ", "_") for name in got)
    return kept if set(kept) == set(names) else got


def check_data(model: Any, columns: Sequence[Hashable], what: str = "data") -> None:
    """Refuse a ``data`` table that a scikit-learn model was not fitted on.

    Others rename columns, and column transformers pass over those they do not know.
    """
    entry = first_step(model)
    ours = type(entry).__module__.startswith("sklearn.")
    if not ours or isinstance(entry, ColumnTransformer):
        return
    fitted = FittedColumns.of(model)
    if fitted.names is not None:
        kept = _as_kept(tuple(map(str, columns)), fitted.names)
        _check_names(kept, fitted.names, what)
    _check_count(len(columns), fitted.count, what)


def as_given(points: Points, labels: Labels) -> Array | pd.DataFrame:
    """A table of the kind that the user gave."""
    return labels.table(np.array(points))


def _check_count(came: int, fitted: int | None, what: str) -> None:
    if fitted is None or came == fitted:
        return
    remedy = (
        "leave out what it did not learn from, such as its target"
        if came > fitted
        else "give all of them"
    )
    raise InvalidInput(
        f"{what}: the model was fitted on {fitted} columns, got {came}; {remedy}"
    )


def _check_names(got: tuple[str, ...], expected: tuple[str, ...], what: str) -> None:
    if got == expected:
        return
    missing = [name for name in expected if name not in set(got)]
    unexpected = [name for name in got if name not in set(expected)]
    if missing or unexpected:
        remedy = (
            f"where the model has renamed them, wrap(model, data={what}) hands it "
            f"{what}'s own, and a problem file needs a table with the model's names"
        )
        if not missing:
            remedy = f"leave these out, {what}.drop(columns=[{listed(unexpected, 3)}])"
        elif not unexpected:
            remedy = "give these too"
        raise InvalidInput(
            f"{what}: the columns differ from those the model was fitted on; missing: "
            f"{listed(missing)}; unexpected: {listed(unexpected)}; {remedy}"
        )
    raise InvalidInput(
        f"{what}: the columns are those the model was fitted on, but in another order "
        f"or repeated; expected {listed(expected)}, got {listed(got)}; "
        f"{what}[list(model.feature_names_in_)] has them in order"
    )

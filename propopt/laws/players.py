"""Players of Shapley games: single columns, or groups of columns.

A group of columns is one player: its columns are known or unknown together. The value
of a group is that of the game among groups. In general it is **not** the sum of the
values of its columns, which belong to another game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Indices, Points
from propopt.base.errors import InvalidInput
from propopt.base.text import value_in_words
from propopt.tables.frames import Labels, group_sums


@final
@dataclass(frozen=True, eq=False)
class Players:
    """The P players of a game, each with one or more columns."""

    of_column: Indices  # (D,): the player of each column
    names: tuple[str, ...]  # (P,)
    columns: tuple[str, ...]  # (D,): names of the columns

    @classmethod
    def of(
        cls, groups: Mapping[str, Sequence[str]], labels: Labels, n_columns: int
    ) -> Self:
        """Make players of groups of columns; a column in no group is a player."""
        if not isinstance(groups, Mapping):
            raise InvalidInput(
                "groups: expected columns by the name of their group, such as "
                f"{{'address': ['street', 'zip']}}, got {type(groups).__name__}"
            )
        columns = labels.feature_names(n_columns)
        sums, names = group_sums(groups, columns)
        return cls(sums.argmax(axis=0), names, columns)

    @property
    def count(self) -> int:
        """The number of players P."""
        return len(self.names)

    def labels(self, labels: Labels) -> Labels:
        """Labels with the names of rows (N,) and of players."""
        return Labels(labels.points, self.names)

    def metadata(
        self, points: Points, categories: Mapping[str, tuple[str, ...]]
    ) -> dict[str, Any]:
        """Values of players in each row: numbers, and combined values of groups."""
        values_of_players = np.empty((len(points), self.count))
        words: dict[str, tuple[str, ...]] = {}
        for player, name in enumerate(self.names):
            members = np.flatnonzero(self.of_column == player)
            if len(members) == 1:
                values_of_players[:, player] = points[:, members[0]]
                if (names := categories.get(self.columns[members[0]])) is not None:
                    words[name] = names
                continue
            cells = []
            for j in members.tolist():
                column = self.columns[j]
                names = categories.get(column)
                values_of_column = points[:, j].tolist()
                cells.append(
                    [f"{column} {value_in_words(x, names)}" for x in values_of_column]
                )
            codes, values = pd.factorize(
                np.array([", ".join(row) for row in zip(*cells, strict=True)], object)
            )
            values_of_players[:, player] = codes
            words[name] = tuple(values)
        return {"points": values_of_players, "categories": words}

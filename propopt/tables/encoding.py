"""What tables and texts have in common: both become rows of numbers, and come back."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import pandas as pd

from propopt._typing import Array, Points
from propopt.tables.names import Labels


class Encoding(Protocol):
    """From what people have to points (N, D), and back: of tables and of documents."""

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The labels of the D columns."""

    def encode(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Points (N, D), with the names of rows and columns."""

    def decode(self, points: Points, labels: Labels | None = None) -> Any:
        """What encodes to ``points`` (n, D)."""

    def frame(self, values: Array, index: pd.Index) -> pd.DataFrame:
        """``values`` (n, D), such as gradients, under the names of the columns."""

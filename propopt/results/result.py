"""What every result can do, be it an explanation or something else."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

import pandas as pd


@runtime_checkable
class Result(Protocol):
    """A table, a card in a notebook, and two files: one to read, one to load again.

    Whatever has these four is written and shown like an explanation, and need not be
    one. What :meth:`save` writes, a class method ``load`` of the same class reads.
    """

    def to_frame(self) -> pd.DataFrame:
        """What is known, as a table with names."""

    def to_csv(self, path: str | Path) -> None:
        """Write the table; numbers read back to the same value."""

    def save(self, path: str | Path) -> None:
        """Write all of it to an ``.npz`` file without pickles."""

    def _repr_html_(self) -> str:
        """A card for notebooks, escaped and without scripts."""

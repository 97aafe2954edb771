"""Sentences of a paper: where each statement stands there, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pandas as pd


class Sentence(NamedTuple):
    """A sentence of a paper in our words.

    Parameters
    ----------
    section : str
        Where it stands, such as ``"§4.1.1"``.
    claim : str
        What the paper says there, with the number of its equation, theorem, figure or
        table. Statements with one claim count once.
    """

    section: str
    claim: str

    def in_words(self) -> str:
        """Place and claim."""
        return f"{self.section}: {self.claim}"


Sentences: TypeAlias = Mapping[tuple[str, str], Sentence]
"""By figure and statement."""


@cache
def read_sentences(path: Path) -> Sentences:
    """The sentences of a table: figure, statement, section and claim."""
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    columns = ["figure", "statement", "section", "claim"]
    rows = table[columns].itertuples(index=False, name=None)
    return {
        (figure, statement): Sentence(section, claim)
        for figure, statement, section, claim in rows
    }

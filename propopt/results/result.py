"""What every result can do, be it an explanation or something else.

A result is its declared fields (:mod:`propopt.base.declared`). It has a table, files to
read and to load, and one :class:`propopt.base.document.Document`, of which terminals,
notebooks and pages show what they have room for.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import pandas as pd

from propopt.base.cards import to_card, to_text
from propopt.base.declared import Declared
from propopt.base.document import Chapter, Document, table_chapter
from propopt.base.errors import WrongType
from propopt.base.files import atomic_write, write_csv
from propopt.base.suggestions import NameKind, missing_attribute


class Result(Declared, ABC):
    """A table, a document for people, and files to read and to load again.

    A class of results declares its fields, its table and its document.
    """

    rows_are_named: ClassVar[bool] = False
    """Whether a CSV file has the names of rows as its first column."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """What is known, as a table with names."""

    @abstractmethod
    def document(self) -> Document:
        """What the result says: findings, how far to trust them, how it was made."""

    def _table(self) -> list[Chapter]:
        """The chapter of :meth:`to_frame`, of results that have no other."""
        return [table_chapter("Table", self.to_frame())]

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; every number reads back to the same value.

        Names of rows are a first column, under the name of the index if it has one.
        Names that a spreadsheet would take for formulas have an apostrophe before them.
        """
        table, named = self.to_frame(), self.rows_are_named
        if named and table.index.name is not None:
            table, named = table.reset_index(), False
        write_csv(path, table, names_of_rows=named)

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_frame` as a list of objects; what is not known is null."""
        table = self.to_frame()
        if self.rows_are_named:
            table = table.reset_index()
        records = [
            {str(key): _plain(value) for key, value in record.items()}
            for record in table.to_dict(orient="records")
        ]
        text = json.dumps(records, indent=1, ensure_ascii=False)
        with atomic_write(Path(path)) as draft:
            draft.write_text(text, encoding="utf-8")

    def to_text(self, *, details: bool = False) -> str:
        """The lines that ``print`` shows; with details those of the report as well.

        Parameters
        ----------
        details : bool
            Whether all chapters of the report are in it too.
        """
        with np.errstate(over="ignore"):  # numbers so large that others are infinite
            return to_text(self.document(), details=details)

    def to_html(self, path: str | Path) -> None:
        """Write a report: one page of :meth:`document` that needs nothing else.

        Needs ``pip install "propopt[report]"``.

        Parameters
        ----------
        path : path
            The file, which is replaced.

        Raises
        ------
        MissingExtra
            If Jinja2 is not installed.
        InvalidInput
            If the folder is not there.

        Examples
        --------
        >>> import tempfile, numpy as np, propopt as po
        >>> best = po.solve(1.0 * po.GradientMatching(np.eye(3)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     best.to_html(f"{folder}/best.html")
        """
        from propopt.results.report.page import write_page

        write_page(path, [self.document()])

    def _repr_html_(self) -> str:
        """The card for notebooks, escaped and without scripts."""
        with np.errstate(over="ignore"):
            return to_card(self.document())

    def __str__(self) -> str:
        return self.to_text()

    _words: ClassVar[NameKind | None] = None
    """Which names of other packages are known, and how these are called here."""

    def __getitem__(self, key: Any) -> Any:
        """Refused, but by results of parts with names."""
        raise WrongType(
            f"{type(self).__name__}: has no items, and was asked for [{key!r}]; "
            "to_frame() is its table, with the names of rows and columns"
        )

    def __len__(self) -> int:
        """Refused, but by results that are lists."""
        raise WrongType(
            f"{type(self).__name__}: has no length; len(result.to_frame()) is that of "
            "its table"
        )

    def __bool__(self) -> bool:
        return True  # which Python would ask of its length

    if not TYPE_CHECKING:  # which trusts whatever a class with __getattr__ is asked

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name, self._words)


def _plain(value: Any) -> object:
    """JSON has no NaN, and names of any type are text."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float) and not math.isfinite(number):
        return None
    plain = number is None or isinstance(number, bool | int | float | str)
    return number if plain else str(number)

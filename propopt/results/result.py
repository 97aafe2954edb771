"""The base class of all results: tables, files and documents.

A result has declared fields (:mod:`propopt.base.declared`), a table, files, and one
:class:`propopt.base.document.Document` that terminals, notebooks and pages render.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.cards import to_card, to_text
from propopt.base.declared import Declared
from propopt.base.document import Chapter, Document, table_chapter
from propopt.base.errors import WrongType
from propopt.base.files import atomic_write, write_csv, write_parquet
from propopt.base.suggestions import (
    NameKind,
    missing_attribute,
    suggests_arguments,
)
from propopt.base.text import printable


class Result(Declared, ABC):
    """A result with a table, a document for people, and files.

    Subclasses declare fields and define the table and the document.
    """

    def __init_subclass__(cls, **declaration: Any) -> None:
        super().__init_subclass__(**declaration)
        for name, method in [*vars(cls).items()]:
            if isinstance(method, FunctionType) and not name.startswith("_"):
                code = method.__code__
                n_arguments = code.co_argcount + code.co_kwonlyargcount
                if n_arguments > 1 or name == "to_frame":
                    setattr(cls, name, suggests_arguments(method))

    rows_are_named: ClassVar[bool] = False
    """Whether CSV files have the names of rows as their first column."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The result as a DataFrame with the names of its rows and columns."""

    @abstractmethod
    def document(self) -> Document:
        """The findings, how far to trust them, and the settings, as blocks to show."""

    def _table(self) -> list[Chapter]:
        """A chapter with the table, for results without other chapters."""
        return [table_chapter("Table", self.to_frame())]

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame` to a CSV file that reads back to equal numbers.

        Names of rows are the first column, headed by the name of the index. An
        apostrophe precedes names that a spreadsheet would take for formulas.

        Parameters
        ----------
        path : path
            The file, which is replaced.
        """
        table = self.to_frame()
        named = self.rows_are_named
        if named and table.index.name is not None:
            table = table.reset_index()
            named = False
        write_csv(path, table, names_of_rows=named)

    def to_parquet(self, path: str | Path) -> None:
        """Write :meth:`to_frame` to a Parquet file.

        Names of rows are the first index level for pandas, and the column ``row`` for
        other readers. Needs ``pip install "propopt[parquet]"``.

        Parameters
        ----------
        path : path
            The file, which is replaced.

        Raises
        ------
        MissingExtra
            If pyarrow is not installed.
        InvalidInput
            If the folder does not exist.

        Examples
        --------
        >>> import tempfile, numpy as np, pandas as pd, propopt as po
        >>> best = po.solve(1.0 * po.GradientMatching(np.eye(3)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     best.to_parquet(f"{folder}/best.parquet")
        ...     table = pd.read_parquet(f"{folder}/best.parquet")
        >>> table.shape
        (3, 3)
        """
        write_parquet(path, self.to_frame(), names_of_rows=self.rows_are_named)

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_frame` as a JSON list of objects, with null for unknown."""
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

    @suggests_arguments
    def to_text(self, *, details: bool = False) -> str:
        """The text that ``print`` shows.

        Parameters
        ----------
        details : bool
            Whether to add all chapters of the report.

        Returns
        -------
        str
            Lines of text.
        """
        with np.errstate(over="ignore"):  # of very large numbers
            return to_text(self.document(), details=details)

    @suggests_arguments
    def to_html(self, path: str | Path) -> None:
        """Write a report: one self-contained page of :meth:`document`.

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
            If the folder does not exist.

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
        """The card for notebooks, escaped, without scripts."""
        with np.errstate(over="ignore"):
            return to_card(self.document())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({printable(self.document().subtitle)})"

    def __str__(self) -> str:
        return self.to_text()

    _words: ClassVar[NameKind | None] = None
    """The kind of names of other packages for which suggestions are made."""

    def __getitem__(self, key: Any) -> Any:
        """Refuse indexing, except in results with named parts."""
        raise WrongType(
            f"{type(self).__name__}: cannot be indexed by [{key!r}]; use "
            "to_frame(), its table with the names of rows and columns"
        )

    def __iter__(self) -> Iterator[Any]:
        """The items of results with a length; pandas asks for it before an array."""
        yield from map(self.__getitem__, range(len(self)))

    def __len__(self) -> int:
        """Refuse a length, except in results that are lists."""
        raise WrongType(
            f"{type(self).__name__}: has no length; use len(result.to_frame()), that "
            "of its table"
        )

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[Any]:
        """Refuse a conversion by NumPy or pandas, which would lose the names."""
        del copy
        if dtype == np.dtype(object):  # an entry of an array of results
            cell = np.empty((), dtype=object)
            cell[()] = self
            return cell
        raise WrongType(
            f"{type(self).__name__}: is no array; use to_frame(), its table with the "
            "names of rows and columns, or to_frame().to_numpy()"
        )

    def __bool__(self) -> bool:
        return True  # else Python would call len

    if not TYPE_CHECKING:  # __getattr__ would hide missing names from type checkers

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name, self._words)


def _plain(value: Any) -> object:
    """A value for JSON: null for NaN and infinity, text for other types."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float) and not math.isfinite(number):
        return None
    plain = number is None or isinstance(number, bool | int | float | str)
    return number if plain else str(number)

"""Tables of problem files: CSV and Parquet files, their columns and rows."""

from __future__ import annotations

import csv
import os
import re
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from propopt.base.arrays import Points
from propopt.base.checks import did_you_mean
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.resources import require_memory
from propopt.base.text import enumerated, repeated
from propopt.laws.background import weights_of_rows
from propopt.losses.graphs import grid
from propopt.losses.graphs.grids import grid_size
from propopt.problems.sections import (
    MOST_NUMBERS,
    Count,
    Interval,
    Label,
    Location,
    Section,
    collect_errors,
    part,
    wrong,
)
from propopt.tables.arrow import ArrowTable, require_texts
from propopt.tables.arrow_files import ARROW_SUFFIXES
from propopt.tables.frames import coerce_numbers, listed


# ---- CSV files, checked line by line


MOST_OF_A_LINE: Final = 2**24
"""Largest number of bytes of a line."""


@dataclass(frozen=True)
class CsvTable:
    """A CSV file: its headers, its number of rows and its format."""

    path: Path  # UTF-8 text
    columns: tuple[str, ...]
    n_rows: int
    separator: str = ","  # or a semicolon or a tab
    numbers_rows: bool = False  # whether the first column has row numbers

    @property
    def notes(self) -> str:
        """A sentence on an unusual format of the file; empty for a usual one."""
        notes = []
        if self.separator != ",":
            notes.append(f"columns are separated by {_SEPARATORS[self.separator]}")
        if self.numbers_rows:
            notes.append("the first column has row numbers and no name; left out")
        return f"{self.path.name}: {'; '.join(notes)}" if notes else ""

    @classmethod
    def of(cls, path: Path) -> CsvTable:
        """Check a file line by line, without storing its cells."""
        if path.suffix.lower() in ARROW_SUFFIXES:
            raise InvalidInput(f"{path.name} is not a CSV file; name it as parquet")
        if not os.path.isfile(path):  # also for impossible file names
            raise InvalidInput(f"there is no file {path}")
        try:
            with path.open("rb") as file:
                lines = _lines(file, path)
                first = next(lines, "")
                separator = _separator_of(first)
                reader = csv.reader(chain([first], lines), delimiter=separator)
                return cls._of_rows(path, reader, separator)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
        except csv.Error as error:
            problem = str(error).partition(" - ")[0]  # no advice on Python
            raise InvalidInput(
                f"{path}:{reader.line_num}: is not a CSV table: {problem}"
            ) from None

    @classmethod
    def _of_rows(cls, path: Path, reader: Any, separator: str) -> CsvTable:
        rows = (row for row in reader if len(row) > 1 or any(map(str.strip, row)))
        headers = next(rows, None)
        if headers is None:
            raise InvalidInput(f"{path}:1: is not a CSV table: there is no header")
        location = f"{path}:{reader.line_num}"
        may_number = len(headers) > 1 and headers[0].strip() in ("", "Unnamed: 0")
        _check_headers(headers[may_number:], location)
        n_rows = 0
        numbers = array("q")
        for row in rows:
            if len(row) != len(headers):
                raise InvalidInput(
                    f"{path}:{reader.line_num}: is not a CSV table: {len(row)} cells "
                    f"under {len(headers)} headers"
                )
            if separator != "," and any(map(_DECIMAL_COMMA.fullmatch, row)):
                raise InvalidInput(
                    f"{path}:{reader.line_num}: decimal numbers have "
                    "commas; write points"
                )
            if may_number and row[0].strip():
                may_number = _WHOLE_NUMBER.fullmatch(row[0]) is not None
                if may_number:
                    numbers.append(int(float(row[0])))
            n_rows += 1
        if n_rows == 0:
            raise InvalidInput(f"{path}:{reader.line_num}: has no rows")
        may_number &= 0 < len(numbers) == len(set(numbers))
        _check_headers(headers[may_number:], location)
        return cls(path, tuple(headers[may_number:]), n_rows, separator, may_number)

    def read(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Read some columns; all by default."""
        n_bytes = 64.0 * self.n_rows * len(columns or self.columns)
        require_memory(n_bytes, f"{self.path}", "leave rows out")
        return self._parsed(usecols=columns or [*self.columns])

    def read_texts(self, column: str) -> pd.Series[str]:
        """A column as text, such as ``1e3`` or ``NA``."""
        n_bytes = 4.0 * self.path.stat().st_size
        require_memory(n_bytes, f"{self.path}", "leave rows out")
        texts = self._parsed(
            usecols=[column], dtype=str, keep_default_na=False, na_values=[""]
        )[column]
        return require_texts(texts, self.path)

    def _parsed(self, **options: Any) -> pd.DataFrame:
        try:
            frame = pd.read_csv(
                self.path,
                sep=self.separator,
                compression=None,
                encoding="utf-8-sig",
                index_col=False,
                low_memory=False,
                **options,
            )
        except (ValueError, OverflowError) as error:
            if "out of memory" in str(error):
                raise MemoryError(f"{self.path}: {error}") from None
            raise InvalidInput(f"{self.path} is not a CSV table: {error}") from None
        if len(frame) != self.n_rows:
            raise InvalidInput(
                f"{self.path} is not a CSV table: it has {self.n_rows} rows, or "
                f"{len(frame)} if quotation marks are respected"
            )
        return frame


FILE_TABLES: Final[Mapping[str, type[CsvTable | ArrowTable]]] = {
    "csv": CsvTable,
    "parquet": ArrowTable,
}
"""Tables in files, by the key of ``data`` that names them."""


def columns_in_words(columns: Sequence[str]) -> str:
    """The names of columns, in a sentence."""
    if len(columns) > 1:
        return f"it has {', '.join(columns)}"
    return "it has a single column; columns are separated by commas"


_SEPARATORS: Final = {";": "semicolons", "\t": "tabs"}
_WHOLE_NUMBER: Final = re.compile(r"\s*\d{1,15}(?:\.0)?\s*")
_DECIMAL_COMMA: Final = re.compile(r"\s*[+-]?\d+,\d+\s*")


def _separator_of(header: str) -> str:
    """A comma, or the semicolon or tab of a header without commas."""
    others = [mark for mark in _SEPARATORS if mark in header and "," not in header]
    return others[0] if others else ","


def _check_headers(headers: list[str], location: str) -> None:
    parted = [mark for mark in ";\t|" if len(headers) == 1 and mark in headers[0]]
    if parted:
        raise InvalidInput(
            f"{location}: is not a CSV table: columns are separated by {parted[0]!r}; "
            "use commas, and points in decimal numbers"
        )
    empty = [number for number, name in enumerate(headers, 1) if not name.strip()]
    if empty:
        raise InvalidInput(
            f"{location}: column {empty[0]} has no name; name it, or remove it "
            "if it has row numbers"
        )
    twice = repeated(headers)
    if twice:
        raise InvalidInput(f"{location}: two columns have one name: {listed(twice)}")


def _lines(file: IO[bytes], path: Path) -> Iterator[str]:
    """Lines of text; a line that is not text is refused with its number."""
    for number, line in enumerate(iter(lambda: file.readline(MOST_OF_A_LINE), b""), 1):
        if len(line) == MOST_OF_A_LINE:
            raise InvalidInput(
                f"{path}:{number}: a line of more than {MOST_OF_A_LINE:,} bytes"
            )
        try:
            # the first line may begin with a byte order mark
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(f"{path}:{number}: is not UTF-8 text") from None
        if "\0" in text:
            raise InvalidInput(f"{path}:{number}: a NUL byte is not text")
        yield text


# ---- The section ``data``


class ProductGrid(Interval):
    """Points of a product grid."""

    per_dimension: Count
    dimensions: Count
    first: Count | None = None

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of points and dimensions."""
        n_points = grid_size(self.per_dimension, self.dimensions, self.first)
        return n_points, self.dimensions

    def build(self, seed: int) -> Points:
        """The points; the last dimension varies fastest."""
        del seed
        return grid(**self.settings())


class Uniform(Interval):
    """Independent points, uniform in a cube, drawn with the seed of the file."""

    points: Count
    dimensions: Count

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of points and dimensions."""
        return self.points, self.dimensions

    def build(self, seed: int) -> Points:
        """Draw the points with a seed."""
        return np.random.default_rng(seed).uniform(self.low, self.high, self.size)


class Data(Section):
    """The points: exactly one of grid, uniform, sklearn, csv and parquet."""

    grid: ProductGrid | None = None
    uniform: Uniform | None = None
    sklearn: Literal["breast_cancer", "diabetes", "digits", "iris", "wine"] | None = (
        None
    )
    csv: str | None = None
    parquet: str | None = Field(
        None,
        description="path of a Parquet, Arrow or Feather file, or of a folder of them; "
        "its dictionary columns are categories",
    )
    text: str | None = Field(
        None,
        description="column of the file with documents, which are explained word by "
        "word; other columns except the target are ignored",
    )
    target: str | None = Field(
        None, description="column of the file that the model learns"
    )
    outcome: str | dict[Label, str] | None = Field(
        None,
        description="the name of what the model predicts, by default that of the "
        "target; or names of its classes, such as {0: malignant, 1: benign}",
    )
    sample_weight: str | None = Field(
        None,
        description="column of the file with the weight of each row in the background, "
        "such as exposure; it is not a feature",
    )
    explain: Count | None = Field(
        None,
        description="number of rows to explain; the model is fitted on the others, and "
        "in the inductive setting gradients are available only at the others",
    )
    categorical: list[str] = Field(
        [], description="columns of the file with categories: text, or codes"
    )
    groups: dict[str, list[str]] = Field(
        {}, description="columns that one-hot encode a feature, by the feature's name"
    )
    standardize: bool = Field(
        False,
        description="scale numeric columns to mean 0 and variance 1 on the rows of the "
        "fit",
    )

    def conflicts(self) -> Iterator[PropoptError]:
        given = [name for name in _NOT_OF_SOURCE if getattr(self, name) is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none of them"
            sources = enumerated([*_NOT_OF_SOURCE], "and")
            yield wrong(f"expected exactly one of {sources}, got {got}")
            return
        yield from self.without_effect(given[0], *_NOT_OF_SOURCE[given[0]])
        if self.text is not None:
            yield from self.without_effect("text", *_NOT_OF_TEXT)
        for name in repeated([*self.categorical, *chain(*self.groups.values())]):
            yield wrong(f"column {name!r} appears twice in categorical and groups")
        if self.sample_weight is not None and self.sample_weight == self.target:
            yield wrong(
                f"column {self.target!r} is the target, and cannot be the weight",
                "sample_weight",
            )
        for name in [name for name, group in self.groups.items() if len(group) < 2]:
            yield wrong(f"group {name!r} needs at least two columns")

    @property
    def of_formula(self) -> ProductGrid | Uniform | None:
        """The section of points that are not rows of a table."""
        return self.grid or self.uniform

    @property
    def source(self) -> str:
        """The key of the points, such as ``csv``."""
        return next(name for name in _NOT_OF_SOURCE if getattr(self, name) is not None)

    @property
    def file(self) -> str | None:
        """The path of the file or folder with the table, if there is one."""
        return self.csv or self.parquet

    @property
    def is_table(self) -> bool:
        """Whether the points are rows of a table."""
        return self.of_formula is None

    def check_explain(self, n_rows: int) -> None:
        """Refuse to explain all rows, without rows for the fit."""
        if self.explain is not None and self.explain >= n_rows:
            raise wrong(
                f"expected fewer rows to explain than the {n_rows} in the table, so "
                f"that some remain for the fit, got {self.explain}",
                "explain",
            )

    @property
    def predicted(self) -> str | dict[Label, str] | None:
        """Names of the outcome; None if the labels suffice, such as "malignant"."""
        return self.outcome_of_table if self.outcome is None else self.outcome

    @property
    def outcome_of_table(self) -> str | None:
        """The name of the target in the table."""
        return self.target if self.sklearn is None else SKLEARN_TABLES[self.sklearn][1]

    def with_categories(self, columns: Iterable[str]) -> Data:
        """The section with further columns of categories."""
        categorical = [*dict.fromkeys([*self.categorical, *columns])]
        return self.model_copy(update={"categorical": categorical})

    def numeric(self, table: Iterable[object]) -> list[str]:
        """Columns that are neither categories nor part of a one-hot encoding."""
        one_hot = chain.from_iterable(self.groups.values())
        coded = {*self.categorical, *one_hot}
        return [column for column in map(str, table) if column not in coded]

    @property
    def n_points(self) -> int:
        """The number of points without a table, refused if they are too many."""
        section = self.of_formula
        assert section is not None
        with part("data", self.source):
            n_points, n_columns = section.size
            if n_points * n_columns > MOST_NUMBERS:
                raise InvalidInput(
                    f"expected at most {MOST_NUMBERS:,} numbers (points × dimensions), "
                    f"got {n_points:,} × {n_columns:,}"
                )
        with part("data"):
            self.check_explain(n_points)
        return n_points

    def points(self, seed: int) -> tuple[Points, Points]:
        """Explained points and other points, without a table."""
        section = self.of_formula
        assert section is not None
        with part("data", self.source):
            points = section.build(seed)
        if self.explain is None:
            return points, points
        return points[: self.explain], points[self.explain :]


SKLEARN_TABLES: Final[dict[str, tuple[str, str | None]]] = {
    "breast_cancer": ("classification", None),
    "diabetes": ("regression", "disease progression"),
    "digits": ("classification", "digit"),
    "iris": ("classification", None),
    "wine": ("classification", None),
}
"""Task and name of the target; None if labels such as "malignant" suffice."""

_NOT_OF_TEXT = ("standardize", "categorical", "groups", "sample_weight")
_NOT_OF_SOURCE = {
    "grid": ("target", "outcome", "explain", "text", *_NOT_OF_TEXT),
    "uniform": ("target", "outcome", "text", *_NOT_OF_TEXT),
    "sklearn": ("target", "text", "categorical", "groups", "sample_weight"),
    "csv": (),
    "parquet": (),
}


# ---- Columns of a table: numbers, or categories where declared; some may be missing


_LARGEST = 1e100
"""Upper bound of numbers in a table, such that squares do not overflow."""


def read_columns(table: pd.DataFrame, data: Data) -> pd.DataFrame:
    """Columns as numbers, NaN if missing, or as declared categories."""
    check_declared(list(table), data)
    if data.standardize and not data.numeric(table):
        raise wrong("there is no numeric column", "standardize")
    numbers = [c for c in table if c not in data.categorical]
    numeric = [c for c in numbers if pd.api.types.is_numeric_dtype(table[c].dtype)]
    floats = table[numeric].astype(float)
    categories = table[data.categorical]
    sizes = floats.abs().max().to_numpy(float)  # NaN if all are missing
    infinite = floats.columns[np.isinf(sizes)]
    large = floats.columns[np.isfinite(sizes) & (sizes > _LARGEST)]
    with part(data.source), collect_errors() as errors:
        texts = table[[c for c in numbers if c not in numeric]]
        if len(texts.columns):
            column = texts.iloc[:, 0]
            is_number = coerce_numbers(column).notna() | column.isna()
            strange = column[~is_number].tolist()[:1]
            example = [f"; {column.name} holds {cell!r:.60}" for cell in strange]
            errors.add(
                "columns must be numeric, or listed in data.categorical; these are "
                f"not: {', '.join([*texts])}{''.join(example)}"
            )
        for columns, must, some in (
            (infinite, "be finite", "infinite"),
            (large, f"lie within ±{_LARGEST:g}", "larger"),
        ):
            if len(columns):
                message = f"numbers must {must}, and in these columns some are {some}"
                errors.add(f"{message}: {', '.join(columns)}")
    if not data.categorical:
        return floats
    return joined(floats, categories.astype("category"))[list(table)]


def joined(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The columns of both tables, concatenated at once for speed."""
    return pd.concat([one, other], axis=1)


def missing_numbers(table: pd.DataFrame) -> list[str]:
    """Numeric columns with missing numbers."""
    numbers = table.select_dtypes("number")
    return [str(column) for column in numbers.columns[numbers.isna().any()]]


def check_declared(columns: Sequence[Hashable], data: Data) -> None:
    """Refuse categories and groups with columns that the table lacks."""
    names = [str(column) for column in columns]
    declared: list[tuple[Location, str]] = [
        (("categorical",), column) for column in data.categorical
    ]
    for name, group in data.groups.items():
        declared += [(("groups", name), column) for column in group]
    with collect_errors() as errors:
        for location, column in declared:
            if column not in names:
                hint = did_you_mean(column, names)
                listed_names = ", ".join(names)
                message = f"there is no column {column!r}{hint}; the columns are "
                message += listed_names
                errors.add(message, *location)


# ---- Tables of a problem file: read, split and standardized


@dataclass(frozen=True, eq=False)
class Rows:
    """A table before it is split."""

    features: Any  # a table, or documents
    target: pd.Series[Any] | None
    weights: pd.Series[Any] | None = None  # as background
    notes: str = ""  # on an unusual format of the file
    categories: tuple[str, ...] = ()  # columns with categories by their type


def read_rows(data: Data, folder: Path) -> Rows:
    """Read the table of a problem file."""
    with part("data"):
        if data.file is not None:
            rows = _of_file(data, folder / data.file)
        else:
            bunch = getattr(datasets, f"load_{data.sklearn}")(as_frame=True)
            target = bunch.target
            if data.outcome_of_table is None:
                target = target.map(dict(enumerate(map(str, bunch.target_names))))
            rows = Rows(bunch.data, target)
        data.check_explain(len(rows.features))
    return rows


def divided(seed: int, n_rows: int, n_explained: int | None) -> tuple[Any, Any]:
    """The places of explained rows, drawn unless all are, and of the rows of the fit.

    Both keep the order of the file, so a model is fitted as in Python.
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.sort(order[:n_explained]), np.sort(order[n_explained:])


def split(rows: Rows, data: Data, seed: int) -> dict[str, Any]:
    """A table split and scaled, as fields of a ``Subject``."""
    explained, fitted = divided(seed, len(rows.features), data.explain)
    is_split = data.explain is not None
    points = rows.features.iloc[explained]
    others = rows.features.iloc[fitted] if is_split else points
    unscaled = None
    if data.standardize:
        unscaled = points[data.numeric(points)]
        points, others = standardized(points, others, data)
    fields = {"points": points, "others": others if is_split else points}
    fields["unscaled"] = unscaled
    if rows.target is not None:
        fields["target"] = rows.target.iloc[explained]
        fields["others_target"] = rows.target.iloc[fitted]
    if rows.weights is not None:
        fields["sample_weight"] = rows.weights.loc[fields["others"].index]
    return fields


def standardized(
    explained: pd.DataFrame, fitted: pd.DataFrame, data: Data
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables, with numeric columns of mean 0 and variance 1 in the second."""
    numbers = data.numeric(fitted)
    scaler = StandardScaler().set_output(transform="pandas").fit(fitted[numbers])
    scaled = [
        joined(scaler.transform(table[numbers]), table.drop(columns=numbers))[
            list(table)
        ]
        for table in (explained, fitted)
    ]
    return scaled[0], scaled[1]


def _of_file(data: Data, path: Path) -> Rows:
    target = weights = None
    key = data.source
    with part(key):
        table = FILE_TABLES[key].of(path)
    names = table.columns
    others = (data.target, data.sample_weight)
    with collect_errors() as errors:
        for name in ("target", "text", "sample_weight"):
            column = getattr(data, name)
            if column is not None and column not in names:
                hint = f"no column {column!r}{did_you_mean(column, names)}"
                errors.add(f"{path.name} has {hint}; {columns_in_words(names)}", name)
        check_declared([c for c in names if c not in others], data)
    categories: tuple[str, ...] = ()
    if isinstance(table, ArrowTable) and data.text is None:
        grouped = {*others, *chain(*data.groups.values())}
        categories = tuple(c for c in table.categories if c not in grouped)
        data = data.with_categories(categories)
    with collect_errors() as errors:
        with part(key if data.text is None else "text"):
            if data.text is not None:
                features: Any = table.read_texts(data.text)
            elif names == (data.target,):
                raise InvalidInput(f"{path.name} has no column except the target")
            else:
                features = table.read()
        if data.target is not None:
            if data.text is None:
                target = features.pop(data.target)
            else:
                with part(key):
                    target = table.read([data.target])[data.target]
            if isinstance(target.dtype, pd.CategoricalDtype):
                target = target.astype(target.cat.categories.dtype)
            if missing := int(target.isna().sum()):
                errors.add(f"{missing} values are missing", "target")
        if data.sample_weight is not None:
            weights = features.pop(data.sample_weight)
            check_weights(weights)
        if data.text is None:
            features = read_columns(features, data)
    return Rows(features, target, weights, table.notes, categories)


def check_weights(weights: pd.Series[Any]) -> None:
    """Refuse invalid weights of rows."""
    with part("sample_weight"):
        _ = weights_of_rows(weights, None, len(weights))

"""What sizes alone tell of a problem, before anything is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from propopt.losses.graphs.grids import grid_size
from propopt.problems.sections import MOST_NUMBERS
from propopt.problems.sources import Source
from propopt.problems.subject.model_sections import (
    TFIDF,
    LearnedSection,
    ModelSection,
    VectorizerSection,
)
from propopt.problems.subject.tables import Data
from propopt.tables.documents import PatternWords


if TYPE_CHECKING:
    from propopt.problems.file import ProblemSchema


# ---- How large a problem is, and what does not fit its size; nothing is fitted for it


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Sizes, known before any number is.

    Parameters
    ----------
    n_rows : int
        All points.
    n_points : int
        Points to explain, N.
    n_known : int
        Points that are not explained; N where all are.
    n_columns : int
        Of the table.
    n_features : int
        Attributions of each point: columns that encode one feature count once.
    columns : tuple of str
        Those of a table, by their names; none are known of a formula.
    features : tuple of str
        Those of attributions, by their names: columns that encode one are one.
    """

    n_rows: int
    n_points: int
    n_known: int
    n_columns: int
    n_features: int
    columns: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, data: Data, n_rows: int, n_columns: int, n_features: int | None = None
    ) -> Extent:
        """Of so many rows, perhaps split into those explained and others."""
        return cls(
            n_rows=n_rows,
            n_points=data.explain or n_rows,
            n_known=n_rows - (data.explain or 0),
            n_columns=n_columns,
            n_features=n_features or n_columns,
        )


def extent_of_formula(data: Data, source: Source) -> Extent:
    """Of a grid or of random points, without making them."""
    if data.uniform is not None:
        place, rows, columns = "uniform", data.uniform.points, data.uniform.dimensions
    else:
        assert data.grid is not None
        place, columns = "grid", data.grid.dimensions
        with source.blaming("data", "grid"):
            rows = grid_size(data.grid.per_dimension, columns, data.grid.first)
    if rows * columns > MOST_NUMBERS:
        raise source.error(
            ("data", place),
            f"expected at most {MOST_NUMBERS:,} numbers (points × dimensions), got "
            f"{rows:,} × {columns:,}",
        )
    check_explain(data, rows, source)
    return Extent.of(data, rows, columns)


def check_explain(data: Data, n_rows: int, source: Source) -> None:
    """Refuse to explain so many rows that none is left."""
    if data.explain is not None and data.explain >= n_rows:
        raise source.error(
            ("data", "explain"),
            f"expected fewer than the {n_rows} rows there are, so that some are left "
            f"to fit on, got {data.explain}",
        )


def check_extent(schema: ProblemSchema, extent: Extent, source: Source) -> None:
    """Refuse lengths, shapes and numbers of neighbours that do not fit the points.

    And other files that are about something else.
    """
    with source.blaming():
        schema.check_extent(extent)
        schema.job.check_files(schema, source.path.parent, extent)


# ---- Documents of a problem file: their sizes, and what a model learns of them


def check_documents(schema: ProblemSchema, source: Source) -> None:
    """Refuse what explains no documents, and what is said of them where there are none.

    Raises
    ------
    ProblemFileError
        With the line of the setting.
    """
    spec = schema.model
    if schema.data.text is None:
        _refuse(spec, "vectorizer", "has no effect without data.text", source)
        return
    if spec is None or not spec.takes_texts:
        place, words = (
            ("function", "a formula") if spec is None else ("model", spec.words)
        )
        raise source.error(
            (place,), f"{words} takes numbers, and data.text are documents"
        )
    _refuse(spec, "smooth", "words are there or not; leave it out", source)


def _refuse(spec: ModelSection | None, name: str, message: str, source: Source) -> None:
    if spec is not None and name in spec.model_fields_set:
        raise source.error(("model", name), message)


def extent_of_documents(data: Data, texts: pd.Series[str]) -> Extent:
    """Sizes of documents, of which the first in this order are explained.

    Words are those of the package ``lime``; a model may know fewer.
    """
    rule = PatternWords()
    explained = texts.iloc[: data.explain]
    words = {found.word for text in explained for found in rule.find(text)}
    return Extent.of(data, len(texts), max(len(words), 1))


def vectorizer_of(data: Data, spec: ModelSection | None) -> VectorizerSection | None:
    """What makes numbers of documents for a model of a file; None where nothing does.

    An imported model makes them itself.
    """
    if data.text is None or not isinstance(spec, LearnedSection):
        return None
    return spec.vectorizer or TFIDF


def learned_words(
    data: Data, spec: ModelSection | None, texts: pd.Series[str], source: Source
) -> list[str]:
    """The columns that a model learns: words that are counted in these documents."""
    vectorizer = vectorizer_of(data, spec)
    if vectorizer is None:
        return []
    with source.blaming("model", "vectorizer"):
        return vectorizer.vocabulary(texts.tolist())

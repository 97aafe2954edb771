"""The subject of a file: the keys that all jobs share, sizes, reading and checks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, TypeAlias

import pandas as pd
from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from propopt.functions import Function
from propopt.functions.wrapping import KnownTable, wrapped_by_margin
from propopt.losses.graphs.grids import grid_size
from propopt.problems.sections import MOST_NUMBERS, Section, Seed
from propopt.problems.sources import Faults, Source
from propopt.problems.subject.learning import check_learning, task_of
from propopt.problems.subject.model_sections import (
    TFIDF,
    Code,
    LearnedSection,
    Making,
    ModelSection,
    VectorizerSection,
)
from propopt.problems.subject.models import AnyModel
from propopt.problems.subject.subject import Formula, ModelFunction, Subject, learn
from propopt.problems.subject.tables import (
    Data,
    Rows,
    missing_numbers,
    order_of_rows,
    read_rows,
    split,
    standardized,
)
from propopt.tables.documents import PatternWords
from propopt.tables.frames import listed
from propopt.tables.schema import Groups, TableSchema


# ---- How large a problem is, and what does not fit its size; nothing is fitted for it


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Sizes, known before any number is."""

    n_rows: int
    n_points: int  # to explain, N
    n_known: int  # not explained; N where all are
    n_columns: int
    n_features: int  # attributions of a point: columns that encode one count once
    columns: tuple[str, ...] = ()  # none are known of a formula
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


# ---- The keys of a problem file that are on its subject


class CommonKeys(Section):
    """The keys that all jobs share: what is explained, and names."""

    name: Annotated[str, Field(max_length=100, pattern=r"^\w[\w.-]*$")] | None = Field(
        None, description="of the files written; by default the name of this file"
    )
    description: str | None = None
    data: Data
    function: Formula | None = None
    model: AnyModel | None = None
    seed: Seed = 0

    @property
    def explained(self) -> Formula | ModelSection:
        """The function or the model: exactly one is given."""
        parts = [part for part in (self.function, self.model) if part is not None]
        if len(parts) != 1:
            raise PydanticCustomError(
                "one_function",
                "expected exactly one of function and model, got {given}",
                {"given": "both" if parts else "neither"},
            )
        return parts[0]

    @property
    @abstractmethod
    def job(self) -> Any:
        """The section that says what is to be done."""

    @abstractmethod
    def keys_of_jobs(self) -> dict[str, set[str]]:
        """By the section of each job the keys that are of it alone."""

    @model_validator(mode="after")
    def _consistent(self) -> CommonKeys:
        learner = self.explained
        if isinstance(learner, Formula) or not learner.needs_target:
            return self
        if self.data.grid is not None or self.data.uniform is not None:
            raise PydanticCustomError(
                "no_table",
                "a model learns from sklearn or csv, and data has {came}",
                {"came": "a grid" if self.data.grid else "uniform points"},
            )
        if self.data.csv is not None and self.data.target is None:
            raise PydanticCustomError(
                "no_target", "a model on a csv needs data.target, the column to learn"
            )
        return self


# ---- Documents of a problem file: their sizes, and what a model learns of them


def check_documents(schema: CommonKeys, source: Source) -> None:
    """Refuse what explains no documents, and what is of them where there are none."""
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
    words = {occurrence.word for text in explained for occurrence in rule.find(text)}
    return Extent.of(data, len(texts), max(len(words), 1))


def vectorizer_of(data: Data, spec: ModelSection | None) -> VectorizerSection | None:
    """What makes numbers of documents for a model of a file; None where nothing does.

    An imported model makes them itself.
    """
    if data.text is None or not isinstance(spec, LearnedSection):
        return None
    return spec.vectorizer or TFIDF


# ---- The subject of a problem file


Known: TypeAlias = Any
"""What ``data`` of :func:`propopt.wrap` is: a schema, a Series of documents, None."""


@dataclass(frozen=True, eq=False)
class _Maker:
    """What makes the model of a file, and the function that it computes."""

    schema: CommonKeys
    source: Source
    code: Code

    def model(self, columns: Sequence[str], *, is_seeded: bool = True) -> Any:
        """An estimator that is fitted or not, or a callable; None of a formula."""
        schema, data, spec = self.schema, self.schema.data, self.schema.model
        if spec is None:
            return None
        making = Making(
            folder=self.source.path.parent,
            seed=schema.seed if is_seeded else None,
            task=task_of(spec, data.sklearn, self.source),
            columns=tuple(columns),
            categorical=tuple(data.categorical),
            code=self.code,
            vectorizer=vectorizer_of(data, spec),
        )
        with self.source.blaming("model"):
            return spec.make(making)

    def learner(self, table: Any) -> Any | None:
        """The model before it is fitted, to be seeded at each fit."""
        return self.model(_names(table), is_seeded=False)

    def function(self, table: Any, target: Any, known: Known) -> ModelFunction:
        """The formula, or the model, fitted to a table if it is not yet."""
        if self.schema.function is not None:
            return ModelFunction(self.schema.function.build())
        model, wrapped = self.model(_names(table)), partial(self._wrapped, table, known)
        with self.source.blaming("model"):
            return learn(model, table, target, wrapped, self.schema.seed)

    def _wrapped(self, table: Any, known: Known, model: Any) -> Function:
        spec, outcome = self.schema.model, self.schema.data.outcome
        assert spec is not None  # by the schema
        function = wrapped_by_margin(
            model, spec.chosen_class, spec.output, KnownTable(known), outcome=outcome
        )
        if getattr(model, "is_flat", False):
            function = replace(function, piecewise_constant=True)  # type: ignore[type-var]
        if spec.smooth is None:
            spec.check_table(model, table)
            return function
        return spec.smooth.build(function, table, self.schema.seed)

    def check(self, columns: list[str], target: pd.Series[Any] | None) -> None:
        """Refuse a model that cannot learn the target, or not give its output."""
        schema, source, spec = self.schema, self.source, self.schema.model
        if spec is None:
            return
        model, n_columns = self.model(columns), len(columns)
        with source.blaming("model"):
            check_learning(model, spec, target, n_columns, refits=schema.job.refits)
        if spec.smooth is not None:
            with source.blaming("model", "smooth", "n_samples"):
                spec.smooth.check(len(schema.data.numeric(columns)))


def _names(table: Any) -> list[str]:
    """Those of columns; documents have none."""
    if isinstance(table, pd.Series):
        return []
    names = list(table) if isinstance(table, pd.DataFrame) else range(table.shape[1])
    return [str(name) for name in names]


def read_subject(
    schema: CommonKeys, source: Source, code: Code = Code.REFUSED
) -> Subject:
    """What a problem file explains; no model is fitted yet."""
    rows, data = check_subject(schema, source, None, code), schema.data
    maker = _Maker(schema, source, code)
    if rows is None:
        points, others = data.points(schema.seed)
        make = partial(maker.function, others, None, None)
        return Subject(points=points, others=others, make=make, seed=schema.seed)
    table = split(rows, data, schema.seed)
    points, others = table["points"], table["others"]
    with source.blaming("data"):
        columns = None if data.text else _coded(data, points, others)
    known = points if data.text else columns
    return Subject(
        **table,
        make=partial(maker.function, others, table["others_target"], known),
        columns=columns,
        make_learner=partial(maker.learner, others),
        seed=schema.seed,
    )


def check_subject(
    schema: CommonKeys,
    source: Source,
    n_rows: int | None,
    code: Code = Code.REFUSED,
) -> Rows | None:
    """Refuse what cannot be explained, as far as that shows before anything is fitted.

    So many rows of a CSV are read, from the first, and of its target all; None is all.
    """
    data, maker = schema.data, _Maker(schema, source, code)
    if not data.is_table:
        extent = extent_of_formula(data, source)
        _check_sizes(schema, extent, source)
        names = [str(number) for number in range(extent.n_columns)]
        maker.check(names, None)
        return None
    rows = read_rows(data, source, n_rows)
    check_explain(data, rows.n_rows, source)
    order = order_of_rows(schema.seed, rows.n_rows)
    learned = order[data.explain or 0 :]
    target = None if rows.target is None else rows.target.iloc[learned]
    faults = Faults()
    if data.text is not None:
        texts = rows.features
        with faults.noted():
            _check_sizes(schema, extent_of_documents(data, texts.iloc[order]), source)
        with faults.noted():
            names, counted = [], vectorizer_of(data, schema.model)
            if counted is not None:
                with source.blaming("model", "vectorizer"):
                    names = counted.vocabulary(texts.iloc[learned].tolist())
            maker.check(names, target)
    else:
        with faults.noted():
            _check_sizes(schema, _extent(data, rows, source), source)
        with faults.noted():
            maker.check([*map(str, rows.features)], target)
        with faults.noted():
            _check_missing(schema, source, missing_numbers(rows.features))
    faults.refuse()
    return rows


def _check_sizes(schema: CommonKeys, extent: Extent, source: Source) -> None:
    with source.blaming():
        schema.job.check_extent(schema, extent, source.path.parent)


def check_table(source: Source, n_rows: int) -> None:
    """Refuse a table that cannot be, whatever else is wrong with the file."""
    content = source.data()
    try:
        data = Data.model_validate(content["data"])
    except (LookupError, TypeError, ValidationError):
        return
    if data.is_table:
        check_explain(data, read_rows(data, source, n_rows).n_rows, source)


def _extent(data: Data, rows: Rows, source: Source) -> Extent:
    with source.blaming("data"):
        features = tuple(map(str, _columns(data, rows.features).names))
    columns = tuple(map(str, rows.features))
    extent = Extent.of(data, rows.n_rows, len(columns), len(features))
    return replace(extent, columns=columns, features=features)


def _check_missing(schema: CommonKeys, source: Source, columns: list[str]) -> None:
    """Refuse columns with missing numbers, where what is explained takes none."""
    if schema.model is not None:
        with source.blaming("model"):
            schema.model.check_missing(columns)
    elif columns:
        message = f"a formula takes no missing numbers: {listed(columns)}"
        raise source.error(("data", "csv"), message)


def first_points(schema: CommonKeys, rows: Rows | None, count: int) -> Any:
    """Some of the points, the last of a whole grid among them."""
    if rows is None:
        return schema.data.some_points(count, schema.seed)
    first = rows.features[:count]
    if schema.data.standardize:
        return standardized(first, first, schema.data)[0]
    return first


def _coded(
    data: Data, points: pd.DataFrame, others: pd.DataFrame
) -> TableSchema | None:
    """What the columns hold, if any is not a number, or some numbers are missing."""
    absent = missing_numbers(points) or missing_numbers(others)
    told = data.categorical or data.groups or absent
    return _columns(data, others) if told else None


def _columns(data: Data, table: pd.DataFrame) -> TableSchema:
    groups: Groups = dict(data.groups.items())
    return TableSchema.of(table, data.categorical, groups)

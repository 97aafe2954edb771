"""Keys that all jobs share, sizes of the data, and valid problem files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field, ValidationError

from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.resources import read_workers
from propopt.base.suggestions import suggests_arguments
from propopt.functions import Function
from propopt.functions.wrapping import wrap
from propopt.problems.sections import (
    MOST_NUMBERS,
    Section,
    Seed,
    collect_errors,
    inner_sections,
    part,
    wrong,
)
from propopt.problems.sources import Source
from propopt.problems.subject.models import (
    TFIDF,
    AnyModel,
    Code,
    ModelSection,
    VectorizerSection,
)
from propopt.problems.subject.subject import (
    Formula,
    LearningTask,
    ModelFunction,
    Subject,
    check_learning,
    learn,
    task_of,
)
from propopt.problems.subject.tables import (
    Data,
    Rows,
    divided,
    missing_numbers,
    read_rows,
    split,
    standardized,
)
from propopt.structures.fitted_model import FittedModel
from propopt.tables.arrow_files import parts_of
from propopt.tables.documents import MarkedWords
from propopt.tables.frames import listed
from propopt.tables.schema import TableSchema


# ---- Sizes of the data


@dataclass(frozen=True, kw_only=True)
class DataShape:
    """Numbers of rows and columns, before anything is computed."""

    data: Data
    folder: Path  # of the problem file
    n_rows: int
    n_columns: int
    columns: tuple[str, ...] = ()  # empty for a formula
    features: tuple[str, ...] = ()

    @property
    def n_points(self) -> int:
        """The number N of explained points."""
        return self.data.explain or self.n_rows

    @property
    def n_observed(self) -> int:
        """The number of other rows; N if all rows are explained."""
        return self.n_rows - (self.data.explain or 0)

    @property
    def n_features(self) -> int:
        """The number of attributions of a point; one-hot columns count once."""
        return len(self.features) or self.n_columns


def shape_of_formula(data: Data, folder: Path) -> DataShape:
    """Sizes of a grid or of random points, without making them."""
    assert data.of_formula is not None
    with part("uniform" if data.grid is None else "grid"):
        rows, columns = data.of_formula.size
        if rows * columns > MOST_NUMBERS:
            raise InvalidInput(
                f"expected at most {MOST_NUMBERS:,} numbers (points × dimensions), got "
                f"{rows:,} × {columns:,}"
            )
    data.check_explain(rows)
    return DataShape(data=data, folder=folder, n_rows=rows, n_columns=columns)


# ---- Keys of the subject


class CommonKeys(Section):
    """Keys that all jobs share: data, function or model, name and seed."""

    name: Annotated[str, Field(max_length=100, pattern=r"^\w[\w.-]*$")] | None = Field(
        None, description="stem of the output files; by default that of this file"
    )
    description: str | None = None
    data: Data
    function: Formula | None = None
    model: AnyModel | None = None
    seed: Seed = 0

    @property
    @abstractmethod
    def job(self) -> Any:
        """The section of the file with the job, such as a sweep or an audit."""

    def conflicts(self) -> Iterator[PropoptError]:
        data = self.data
        model = self.model
        is_text = self.data.text is not None
        if (self.function is None) == (model is None):
            got = "both" if model else "neither"
            yield wrong(f"expected exactly one of function and model, got {got}")
        elif model is not None and model.needs_target and not data.is_table:
            got = "a grid" if data.grid else "uniform points"
            sources = "sklearn, csv or parquet"
            yield wrong(f"a model learns from {sources}, and data has {got}")
        elif model is not None and model.needs_target and data.file and not data.target:
            message = (
                f"a model on a {data.source} needs data.target, the column to learn"
            )
            yield wrong(message)
        if is_text and not (model is not None and model.takes_texts):
            key = "function" if model is None else "model"
            words = "a formula" if model is None else model.words
            yield wrong(f"{words} takes numbers, and data.text are documents", key)
        if data.sample_weight is not None and not self.job.weighs_rows:
            reason = "only explain, audit and compare have a background with weights"
            yield wrong(f"{reason}; leave it out", "data", "sample_weight")
        for location, section in inner_sections(self):
            messages = section.of_tables if is_text else section.of_texts
            for name in [x for x in messages if x in section.model_fields_set]:
                yield wrong(messages[name], *location, name)


def vectorizer_of(data: Data, spec: ModelSection | None) -> VectorizerSection | None:
    """The vectorizer of documents for the model of a file, if it needs one."""
    if data.text is None or spec is None or not spec.takes("vectorizer"):
        return None
    vectorizer: VectorizerSection | None = spec.settings()["vectorizer"]
    return vectorizer or TFIDF


# ---- A valid problem file, with its subject and its job


FIRST_ROWS: Final = 1_000
"""Number of rows at which a check evaluates a formula."""


@suggests_arguments
@dataclass(frozen=True, eq=False)
class ProblemFile:
    """A valid problem file, or a valid mapping with the same sections.

    Parameters
    ----------
    source : Source
        The file, for error messages.
    schema : ProblemSchema
        Its validated content.
    code : Code
        Whether Python objects that it names may be imported.
    n_jobs : int, optional
        Number of workers; results do not depend on it.
    resume : path, optional
        A folder for finished fits, from which an interrupted run continues.
    report : bool
        Whether a run writes a page of its result, ``<name>.html``.
    scheduler : str, optional
        The address of a scheduler of Dask, whose workers explain rows of large tables.
    read : callable, optional
        Reader of other problem files, for jobs that name some, and of this one with
        other settings: (path or Source, code) ↦ file.
    """

    source: Source
    schema: CommonKeys
    code: Code = Code.REFUSED
    n_jobs: int | None = None
    resume: str | Path | None = None
    report: bool = False
    scheduler: str | None = None
    read: Callable[[Path | Source, Code], ProblemFile] | None = None

    def __post_init__(self) -> None:
        read_workers(self.n_jobs)

    @property
    def job(self) -> Any:
        """The section of the file with the job, such as a sweep or an audit."""
        return self.schema.job

    @property
    def name(self) -> str:
        """The stem of the output files."""
        return self.schema.name or self.source.name

    @property
    def resolved(self) -> dict[str, Any]:
        """All settings, including defaults, as plain values."""
        for _, section in inner_sections(self.schema):
            type(section).model_rebuild()  # pydantic < 2.14 writes only what is built
        whole = self.schema.model_dump(mode="json", serialize_as_any=True)
        return {"name": self.name, **{k: x for k, x in whole.items() if x is not None}}

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that are read: the problem file, those of a table, a model file."""
        folder = self.source.path.parent
        named = map(dict(self.schema.model or ()).get, ("onnx", "booster"))
        models = [folder / name for name in named if name is not None]
        table = self.schema.data.file
        parts = [] if table is None else parts_of(folder / table)
        return (*self.source.files, *parts, *models)

    @property
    def model(self) -> str:
        """All settings of the model, in words."""
        unused = {"output"} if self.job.refits else set()
        return settings_in_words(self.schema.model, unused)

    def with_options(self, *, reasons: bool = False, **options: Any) -> ProblemFile:
        """A copy in which options of the command line replace settings of the file.

        Parameters
        ----------
        reasons : bool
            Whether to add default reasons, for a job that explains a model.
        **options
            Fields of the job, such as ``rows``, ``attributions`` and ``solver``, which
            are checked as those of the file, or of this class, such as ``n_jobs``,
            ``resume`` and ``report``. None does not change the job.

        Returns
        -------
        ProblemFile
            The changed copy; the original stays the same.

        Raises
        ------
        ProblemFileError
            If an option cannot be used, or contradicts the sections of the file.
        TypeError
            If neither the job nor the file has an option of this name.
        """
        given = {
            x: options.pop(x) for x in [*options] if x in type(self.job).model_fields
        }
        given = {key: value for key, value in given.items() if value is not None}
        if reasons and "reasons" not in self.job.model_fields_set:
            given["reasons"] = {}
        schema = self.schema
        if given:
            assert self.read is not None, "the file was read by it"
            key = None if self.job is schema else self.job.key
            changed = self.source.with_settings(key, given)
            schema = self.read(changed, self.code).schema
        return replace(self, schema=schema, **options)

    def with_seed(self, seed: int) -> ProblemFile:
        """A copy with another seed."""
        return replace(self, schema=self.schema.model_copy(update={"seed": seed}))

    def require(self, command: str) -> Any:
        """The section with the job; an error if the file is for another command."""
        if self.job.command != command:
            message = f"is run by propopt {self.job.command}"
            raise self.source.error((self.job.key,), message)
        return self.job

    def build(self) -> Any:
        """The problem of a sweep, with parts that are made on demand.

        Raises
        ------
        ProblemFileError
            If the file has another job than ``objective``.
        """
        return self._problem

    @cached_property
    def _problem(self) -> Any:
        return self.require("sweep").build(self)

    def run(
        self, folder: str | Path, *, quiet: bool = False, verbose: bool = False
    ) -> Any:
        """Run the job: compute, write files, and print a summary.

        Parameters
        ----------
        folder : path
            Where to write; made if it is not there.
        quiet : bool
            Print only warnings, to standard error.
        verbose : bool
            Print tables and settings too.

        Returns
        -------
        object
            The result: trade-offs, an explanation, limits of LIME, or scores; None if a
            resumed run was already finished.
        """
        return self.job.run(self, folder, quiet=quiet, verbose=verbose)

    def check_data(self) -> None:
        """Raise the errors that a run would raise for its data, without any fit.

        The whole table is read; a formula is evaluated at some points.

        Raises
        ------
        ProblemFileError
            For invalid tables, columns, targets and outputs, inconsistent sizes, and
            formulas that are not finite.
        """
        function = self.schema.function
        with self.source.locating_errors():
            rows = self._rows()
            if function is not None:
                with part("function"):
                    made = function.build()
                    self.job.check_formula(made, self._first_points(rows))

    def _first_points(self, rows: Rows | None) -> Any:
        """The first points, and the last of a grid or of random points."""
        data = self.schema.data
        if rows is None:
            points, others = data.points(self.schema.seed)
            return np.concatenate([points[:FIRST_ROWS], others[-1:]])
        data = self._data
        first = rows.features[:FIRST_ROWS]
        return standardized(first, first, data)[0] if data.standardize else first

    # ---- the subject, read and checked before anything is fitted

    @cached_property
    def subject(self) -> Subject:
        """The data and the function to explain; a model is fitted when it is needed."""
        with self.source.locating_errors():
            rows = self._rows()
        data = self.schema.data
        seed = self.schema.seed
        if rows is None:
            points, others = data.points(seed)
            make = partial(self.function_of, others, None, None)
            return Subject(points=points, others=others, make=make, seed=seed)
        data = self._data
        _ = self._task
        _ = self.notes
        table = split(rows, data, seed)
        vars(self).pop("_table")  # what is needed of it was computed
        del rows
        points = table["points"]
        others = table["others"]
        with self.source.locating_errors("data"):
            needs_schema: Any = data.categorical or data.groups
            if not (needs_schema or data.text):
                needs_schema = missing_numbers(points) or missing_numbers(others)
            columns = _columns(data, others) if needs_schema else None
        wrap_data = points if data.text else columns
        names = _names(others)
        return Subject(
            **table,
            make=partial(
                self.function_of, others, table.get("others_target"), wrap_data
            ),
            columns=columns,
            make_learner=partial(self._estimator, names, is_seeded=False),
            seed=seed,
        )

    def _rows(self) -> Rows | None:
        """The checked table; None for a grid or random points."""
        schema = self.schema
        data = self.schema.data
        folder = self.source.path.parent
        if not data.is_table:
            with part("data"):
                data_shape = shape_of_formula(data, folder)
            self._check_sizes(data_shape)
            self._check_model(
                [str(number) for number in range(data_shape.n_columns)], None
            )
            return None
        rows = self._table
        assert rows is not None, "data of a table"
        if rows.categories:
            data = self._data
            schema = schema.model_copy(update={"data": data})
            for error in schema.job.mistakes(schema):
                raise error
        n_rows = len(rows.features)
        shown, learned = divided(schema.seed, n_rows, data.explain)
        target = None if rows.target is None else rows.target.iloc[learned]
        sized = partial(DataShape, data=data, folder=folder, n_rows=n_rows)
        with collect_errors() as mistakes:
            if data.text is not None:
                texts = rows.features
                rule = MarkedWords()
                explained = texts.iloc[shown]
                words = {one.word for text in explained for one in rule.find(text)}
                with mistakes.noted():  # a model may know fewer words
                    self._check_sizes(sized(n_columns=max(len(words), 1)))
                names = []
                counted = vectorizer_of(data, schema.model)
                if counted is not None:
                    with part("model", "vectorizer"):
                        names = counted.vocabulary(texts.iloc[learned].tolist())
                self._check_model(names, target)
            else:
                names = [*map(str, rows.features)]
                with mistakes.noted():
                    with part("data"):
                        features = tuple(map(str, _columns(data, rows.features).names))
                    shape_of_table = sized(n_columns=len(names), features=features)
                    self._check_sizes(replace(shape_of_table, columns=tuple(names)))
                with mistakes.noted():
                    self._check_model(names, target)
                self._check_missing(missing_numbers(rows.features))
        return rows

    def _check_sizes(self, data_shape: DataShape) -> None:
        with collect_errors() as mistakes:
            for location, section in inner_sections(self.schema):
                with mistakes.noted(*location):
                    section.check(data_shape)

    def _check_model(self, columns: list[str], target: pd.Series[Any] | None) -> None:
        """Refuse a model that cannot learn the target, or lacks the output."""
        spec = self.schema.model
        if spec is None:
            return
        with part("model"):
            model = self._estimator(columns)
            n_columns = len(columns)
            check_learning(model, spec, target, n_columns, refits=self.job.refits)

    def _check_missing(self, columns: list[str]) -> None:
        """Refuse missing numbers if the function or model does not take them."""
        if self.schema.model is not None:
            with part("model"):
                self.schema.model.check_missing(columns)
        elif columns:
            message = f"a formula takes no missing numbers: {listed(columns)}"
            raise wrong(message, "data", self.schema.data.source)

    def _estimator(self, columns: Sequence[str], *, is_seeded: bool = True) -> Any:
        """The model, fitted or not, or a callable; None for a formula."""
        schema = self.schema
        data = self._data
        spec = self.schema.model
        if spec is None:
            return None
        return spec.make(
            folder=self.source.path.parent,
            seed=schema.seed if is_seeded else None,
            task=None if (task := self._task) is None else task.kind,
            columns=tuple(columns),
            categorical=tuple(data.categorical),
            code=self.code,
            vectorizer=vectorizer_of(data, spec),
        )

    @cached_property
    def _table(self) -> Rows | None:
        """The table of the file; None for a grid or random points."""
        data = self.schema.data
        return read_rows(data, self.source.path.parent) if data.is_table else None

    @cached_property
    def _data(self) -> Data:
        """The section of the data, with categories that the types of columns show."""
        data = self.schema.data
        table = self._table
        if table is None or not table.categories:
            return data
        return data.with_categories(table.categories)

    @cached_property
    def _task(self) -> LearningTask | None:
        """The task of the model, given or inferred from all values of the target."""
        spec = self.schema.model
        table = self._table
        target = None if table is None else table.target
        return None if spec is None else task_of(spec, self.schema.data.sklearn, target)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on an inferred task (such as regression) and an unusual file."""
        data = self.schema.data
        task = self._task
        table = self._table
        words = "" if table is None else table.notes
        return words, "" if task is None else task.in_words(data.target)

    def function_of(self, table: Any, target: Any, data: Any) -> ModelFunction:
        """The function to explain: a formula, or a model that is fitted if necessary.

        Parameters
        ----------
        table : array or DataFrame (n, D)
            The rows for the fit.
        target : array (n,)
            The target of the rows.
        data : TableSchema, DataFrame or array
            The columns of the table, as for :func:`propopt.wrap`.

        Returns
        -------
        ModelFunction
            The function, its estimator (None for a formula) and the rows of the fit.

        Raises
        ------
        ProblemFileError
            If the model cannot be built, fitted or wrapped.
        """
        if self.schema.function is not None:
            return ModelFunction(self.schema.function.build())
        wrapped = partial(self.wrapped, table, data)
        with self.source.locating_errors("model"):
            model = self._estimator(_names(table))
            return learn(model, table, target, wrapped, self.schema.seed)

    def with_output(self, output: str) -> ProblemFile:
        """A copy that explains another output of the model, which is not refitted."""
        subject = self.subject
        spec = self.schema.model
        assert spec is not None  # a formula has one output
        section = spec.model_copy(update={"output": output})
        changed = replace(
            self, schema=self.schema.model_copy(update={"model": section})
        )
        vars(changed)["subject"] = subject.with_function(
            partial(changed.wrapped, subject.others, subject.columns)
        )
        return changed

    def wrapped(self, table: Any, data: Any, model: Any) -> Function:
        """The explained output of a fitted model, as a function of the table."""
        spec = self.schema.model
        outcome = self.schema.data.predicted
        assert spec is not None  # by the schema
        if data is None and isinstance(table, pd.DataFrame):
            header = FittedModel.of(model).in_order(table.columns)
            data = None if header.equals(table.columns) else table
        target = spec.chosen_class
        output = self.job.output_of(model, target, spec.output)
        function = wrap(model, target, output, data=data, outcome=outcome)
        if getattr(model, "is_piecewise_constant", False):
            function = replace(function, piecewise_constant=True)  # type: ignore[type-var]
        spec.check_table(model, table)
        return function


def settings_in_words(section: Section | None, unused: Iterable[str] = ()) -> str:
    """All settings of a model or scheme, including defaults, in words."""
    if section is None:
        return ""
    return _settings(section.model_dump(exclude_none=True, exclude={*unused}))


def _settings(values: dict[str, Any]) -> str:
    """The kind and all settings; inner sections are in parentheses."""
    words = [
        f"{name} ({_settings(value)})" if isinstance(value, dict) else f"{name} {value}"
        for name, value in values.items()
        if name != "kind"
    ]
    return ", ".join([str(values["kind"]), *words] if "kind" in values else words)


def _names(table: Any) -> list[str]:
    """Names of columns; none for documents."""
    if isinstance(table, pd.Series):
        return []
    names = list(table) if isinstance(table, pd.DataFrame) else range(table.shape[1])
    return [str(name) for name in names]


def check_table(source: Source) -> None:
    """Refuse an invalid table, also if the file has other errors."""
    content = source.content
    try:
        data = Data.model_validate(content["data"])
    except (LookupError, TypeError, ValidationError):
        return
    if data.is_table:
        with source.locating_errors():
            read_rows(data, source.path.parent)


def _columns(data: Data, table: pd.DataFrame) -> TableSchema:
    groups: Any = data.groups
    return TableSchema.of(table, data.categorical, groups)

"""Keys that all jobs share, and valid problem files."""

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
from propopt.base.resources import read_workers, threads_of_run
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.null_models import bootstrap_refits
from propopt.functions import Function
from propopt.functions.wrapping import wrap
from propopt.problems.sections import (
    OF_INPUT,
    Section,
    Seed,
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
    fit,
    is_unfitted,
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
from propopt.structures.kinds import has_method
from propopt.tables.arrow_files import parts_of
from propopt.tables.schema import TableSchema


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
        if (self.function is None) == (self.model is None):
            got = "both" if self.model else "neither"
            yield wrong(f"expected exactly one of function and model, got {got}")
        if data.sample_weight is not None and not self.job.weighs_rows:
            reason = "only explain, audit and compare have a background with weights"
            yield wrong(f"{reason}; leave it out", "data", "sample_weight")
        is_text = data.text is not None
        for location, section in inner_sections(self):
            unused = section.of_tables if is_text else section.of_texts
            for name in sorted(unused & section.model_fields_set):
                needs = "with data.text" if is_text else "without data.text"
                yield wrong(f"has no effect {needs}", *location, name)


def vectorizer_of(data: Data, spec: ModelSection | None) -> VectorizerSection | None:
    """The vectorizer of documents for the model of a file, if it needs one."""
    if data.text is None or spec is None or "vectorizer" not in type(spec).model_fields:
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

    @cached_property
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
        with self.source.locating_errors():
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
        try:
            return self.job.run(self, folder, quiet=quiet, verbose=verbose)
        except OF_INPUT as error:
            has_key = self.source.find(error.part)[1]
            where = () if has_key else (self.job.key,)
            raise self.source.located(error, *where) from error

    def check_data(self) -> None:
        """Raise the errors that a run would raise for its data, without any fit.

        The whole table is read; a formula is evaluated at some points.

        Raises
        ------
        ProblemFileError
            For invalid tables, columns and targets, and formulas that are not finite.
        """
        with self.source.locating_errors():
            rows = self._rows()
            if self.schema.function is not None:
                points = self._first_points(rows)
                with part("function"):
                    self.job.check_formula(self._formula(), points)

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
            groups: Any = data.groups
            columns = None
            if needs_schema:
                columns = TableSchema.of(others, data.categorical, groups)
        wrap_data = points if data.text else columns
        learner = None
        if self.schema.model is not None:
            learner = partial(self._estimator, _names(others), is_seeded=False)
        return Subject(
            **table,
            make=partial(
                self.function_of, others, table.get("others_target"), wrap_data
            ),
            columns=columns,
            make_learner=learner,
            seed=seed,
        )

    def _rows(self) -> Rows | None:
        """The checked table; None for a grid or random points."""
        schema = self.schema
        rows = self._table
        n_rows = schema.data.n_points if rows is None else len(rows.features)
        self.job.check_size(n_rows - (schema.data.explain or 0))
        if schema.model is None:
            return rows
        if rows is None:
            features = schema.data.points(schema.seed)[1]
            target = None
        else:
            _, fitted = divided(schema.seed, len(rows.features), schema.data.explain)
            features = rows.features.iloc[fitted]
            target = None if rows.target is None else rows.target.iloc[fitted]
        names = _names(features)
        vectorizer = vectorizer_of(schema.data, schema.model)
        if vectorizer is not None:
            with part("model", "vectorizer"):
                names = vectorizer.vocabulary(features.tolist())
        with part("model"):
            model = self._estimator(names)
            check_learning(
                model, schema.model, target, len(names), refits=self.job.refits
            )
        return rows

    def _estimator(self, columns: Sequence[str], *, is_seeded: bool = True) -> Any:
        """The model, fitted or not, or a callable; None for a formula."""
        data = self._data
        spec = self.schema.model
        if spec is None:
            return None
        return spec.make(
            folder=self.source.path.parent,
            seed=self.schema.seed if is_seeded else None,
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
        task = self._task
        table = self._table
        words = "" if table is None else table.notes
        return words, "" if task is None else task.in_words(self.schema.data.target)

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
            return ModelFunction(self._formula())
        n_fitted = None
        with self.source.locating_errors("model"):
            model = self._estimator(_names(table))
            if is_unfitted(model):
                model = fit(model, table, target, self.schema.seed)
                n_fitted = len(table)
            return ModelFunction(self.wrapped(table, data, model), model, n_fitted)

    def _formula(self) -> Function:
        """The function that the file names; errors are located here, not at a loss."""
        formula = self.schema.function
        assert formula is not None
        with self.source.locating_errors("function"):
            return formula.build()

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

    @property
    def can_refit(self) -> bool:
        """Whether the model can be fitted again, and its target is there."""
        if self.schema.model is None or self.subject.others_target is None:
            return False
        return has_method(self.subject.estimator, "get_params")

    def refits(self, times: int, columns: Any = None) -> list[Function]:
        """Refits of the model to bootstrap samples of its table, as functions.

        ``columns`` is the schema of their tables; by default that of the subject.

        Raises
        ------
        InvalidInput
            If there is nothing to fit, or no target.
        """
        if not self.can_refit:
            raise InvalidInput(
                "it needs a model that can be fitted again, and its target; leave it "
                "out for formulas and for models that are read from files"
            )
        subject = self.subject
        X = subject.others
        with threads_of_run(len(X)):
            models = bootstrap_refits(
                subject.estimator,
                X,
                subject.others_target,
                times=times,
                rng=subject.seed,
            )
        schema = subject.columns if columns is None else columns
        return [self.wrapped(X, schema, model) for model in models]

    def wrapped(self, table: Any, data: Any, model: Any) -> Function:
        """The explained output of a fitted model, as a function of the table."""
        spec = self.schema.model
        assert spec is not None  # by the schema
        if data is None and isinstance(table, pd.DataFrame):
            header = FittedModel.of(model).in_order(table.columns)
            data = None if header.equals(table.columns) else table
        target = spec.chosen_class
        output = self.job.output_of(model, target, spec.output)
        function = wrap(
            model, target, output, data=data, outcome=self.schema.data.predicted
        )
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
    try:
        data = Data.model_validate(source.content["data"])
    except (LookupError, TypeError, ValidationError):
        return
    if data.is_table:
        with source.locating_errors():
            read_rows(data, source.path.parent)

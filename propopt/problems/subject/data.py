"""A problem file: the keys that all jobs share, sizes, checks, and its subject."""

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
    missing_numbers,
    order_of_rows,
    read_rows,
    split,
    standardized,
)
from propopt.tables.documents import PatternWords
from propopt.tables.frames import listed
from propopt.tables.schema import TableSchema


# ---- How large a problem is, and what does not fit its size; nothing is fitted for it


@dataclass(frozen=True, kw_only=True)
class DataShape:
    """Sizes, known before any number is."""

    data: Data
    folder: Path  # of the problem file
    n_rows: int
    n_columns: int
    columns: tuple[str, ...] = ()  # none are known of a formula
    features: tuple[str, ...] = ()

    @property
    def n_points(self) -> int:
        """To explain, N."""
        return self.data.explain or self.n_rows

    @property
    def n_observed(self) -> int:
        """Not explained; N where all are."""
        return self.n_rows - (self.data.explain or 0)

    @property
    def n_features(self) -> int:
        """Attributions of a point: columns that encode one count once."""
        return len(self.features) or self.n_columns


def shape_of_formula(data: Data, folder: Path) -> DataShape:
    """Of a grid or of random points, without making them."""
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
    @abstractmethod
    def job(self) -> Any:
        """The section that says what is to be done."""

    def conflicts(self) -> Iterator[PropoptError]:
        data, model, is_text = self.data, self.model, self.data.text is not None
        if (self.function is None) == (model is None):
            came = "both" if model else "neither"
            yield wrong(f"expected exactly one of function and model, got {came}")
        elif model is not None and model.needs_target and not data.is_table:
            came = "a grid" if data.grid else "uniform points"
            yield wrong(f"a model learns from sklearn or csv, and data has {came}")
        elif model is not None and model.needs_target and data.csv and not data.target:
            yield wrong("a model on a csv needs data.target, the column to learn")
        if is_text and not (model is not None and model.takes_texts):
            place = "function" if model is None else "model"
            words = "a formula" if model is None else model.words
            yield wrong(f"{words} takes numbers, and data.text are documents", place)
        if data.sample_weight is not None and not self.job.weighs_rows:
            reason = "only explain, audit and compare have a background with weights"
            yield wrong(f"{reason}; leave it out", "data", "sample_weight")
        for location, section in inner_sections(self):
            told = section.of_tables if is_text else section.of_texts
            for name in [x for x in told if x in section.model_fields_set]:
                yield wrong(told[name], *location, name)


def vectorizer_of(data: Data, spec: ModelSection | None) -> VectorizerSection | None:
    """What makes numbers of documents for a model of a file, if something does."""
    if data.text is None or spec is None or not spec.takes("vectorizer"):
        return None
    own: VectorizerSection | None = spec.settings()["vectorizer"]
    return own or TFIDF


# ---- A problem file: what is wrong with it, its subject, its job


FIRST_ROWS: Final = 1_000
"""At which a check evaluates a formula."""


@suggests_arguments
@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a problem file says, or a mapping that says the same, once it is valid.

    Parameters
    ----------
    source : Source
        The file, for messages.
    schema : ProblemSchema
        Its content.
    code : Code
        Whether Python objects that it names may be imported.
    n_jobs : int, optional
        Workers of a run; numbers do not depend on them.
    resume : path, optional
        A folder in which fits are kept, so that a run that ended early goes on; what
        was finished is not done again.
    report : bool
        Whether a run writes a page of what it found, ``<name>.html``.
    read : callable, optional
        What reads other problem files, for jobs that name some: (path, code) ↦ file.
    """

    source: Source
    schema: CommonKeys
    code: Code = Code.REFUSED
    n_jobs: int | None = None
    resume: str | Path | None = None
    report: bool = False
    read: Callable[[Path, Code], ProblemFile] | None = None

    @property
    def job(self) -> Any:
        """What is to be done: the section that says so."""
        return self.schema.job

    @property
    def name(self) -> str:
        """What the files written are called."""
        return self.schema.name or self.source.name

    @property
    def resolved(self) -> dict[str, Any]:
        """All settings, defaults too, in plain values."""
        for _, section in inner_sections(self.schema):
            type(section).model_rebuild()  # pydantic < 2.14 writes only what is built
        whole = self.schema.model_dump(mode="json", serialize_as_any=True)
        return {"name": self.name, **{k: x for k, x in whole.items() if x is not None}}

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read: the problem file, its table if a CSV, its model if a file."""
        model = map(dict(self.schema.model or ()).get, ("onnx", "booster"))
        named = (self.schema.data.csv, *model)
        others = (self.source.path.parent / name for name in named if name is not None)
        return (*self.source.files, *others)

    @property
    def model(self) -> str:
        """All settings of the model, in words."""
        unused = {"output"} if self.job.refits else set()
        return settings_in_words(self.schema.model, unused)

    def asked(self, *, reasons: bool = False, **said: Any) -> ProblemFile:
        """The same with settings of the command line, of its job or of its run."""
        named = {x: said.pop(x) for x in [*said] if x in type(self.job).model_fields}
        job = self.job.model_copy(update={k: x for k, x in named.items() if x})
        if reasons:
            job = job.with_reasons()
        schema = self.schema.model_copy(update={job.key: job})
        if self.job is self.schema:
            schema = job
        for error in job.mistakes(schema):
            raise error
        return replace(self, schema=schema, **said)

    def with_seed(self, seed: int) -> ProblemFile:
        """The same with other draws of whatever is random."""
        return replace(self, schema=self.schema.model_copy(update={"seed": seed}))

    def require(self, command: str) -> Any:
        """The section of a job; a file with another one is refused."""
        if self.job.command != command:
            message = f"is run by propopt {self.job.command}"
            raise self.source.error((self.job.key,), message)
        return self.job

    def build(self) -> Any:
        """The problem to sweep; its parts are made when they are first asked for.

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
        """Do its job: find, write files, print what is read first.

        Parameters
        ----------
        folder : path
            Where to write; made if it is not there.
        quiet : bool
            Print nothing but warnings, which go to standard error.
        verbose : bool
            Print tables and settings too.

        Returns
        -------
        object
            What was found: trade-offs, an explanation, limits of LIME, scores; None if
            it is resumed, and all of it was finished before.
        """
        return self.job.run(self, folder, quiet=quiet, verbose=verbose)

    def check_data(self) -> None:
        """Refuse what a run would, as far as shows before anything is fitted.

        All of its table is read; a formula is evaluated at some points.

        Raises
        ------
        ProblemFileError
            For tables, columns, targets and outputs that cannot be, sizes that do not
            fit each other, and formulas that are not finite.
        """
        function = self.schema.function
        with self.source.locating_errors():
            rows = self._rows()
            if function is not None:
                with part("function"):
                    made = function.build()
                    self.job.check_formula(made, self._first_points(rows))

    def _first_points(self, rows: Rows | None) -> Any:
        """Some of the points, the last that are not of a table among them."""
        data = self.schema.data
        if rows is None:
            points, others = data.points(self.schema.seed)
            return np.concatenate([points[:FIRST_ROWS], others[-1:]])
        first = rows.features[:FIRST_ROWS]
        return standardized(first, first, data)[0] if data.standardize else first

    # ---- its subject: read, and refused as far as that shows before anything is fitted

    @cached_property
    def subject(self) -> Subject:
        """What is explained; all jobs share it, and no model is fitted yet."""
        with self.source.locating_errors():
            rows = self._rows()
        data, seed = self.schema.data, self.schema.seed
        if rows is None:
            points, others = data.points(seed)
            make = partial(self.function_of, others, None, None)
            return Subject(points=points, others=others, make=make, seed=seed)
        table = split(rows, data, seed)
        points, others = table["points"], table["others"]
        with self.source.locating_errors("data"):
            told: Any = data.categorical or data.groups
            if not (told or data.text):
                told = missing_numbers(points) or missing_numbers(others)
            columns = _columns(data, others) if told else None
        known = points if data.text else columns
        names = _names(others)
        return Subject(
            **table,
            make=partial(self.function_of, others, table.get("others_target"), known),
            columns=columns,
            make_learner=partial(self._estimator, names, is_seeded=False),
            seed=seed,
        )

    def _rows(self) -> Rows | None:
        """The table, if there is one that can be explained."""
        schema, data, folder = self.schema, self.schema.data, self.source.path.parent
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
        n_rows = len(rows.features)
        order = order_of_rows(schema.seed, n_rows)
        learned = order[data.explain or 0 :]
        target = None if rows.target is None else rows.target.iloc[learned]
        sized = partial(DataShape, data=data, folder=folder, n_rows=n_rows)
        with collect_errors() as mistakes:
            if data.text is not None:
                texts, rule = rows.features, PatternWords()
                explained = texts.iloc[order[: data.explain]]
                words = {one.word for text in explained for one in rule.find(text)}
                with mistakes.noted():  # a model may know fewer words
                    self._check_sizes(sized(n_columns=max(len(words), 1)))
                names, counted = [], vectorizer_of(data, schema.model)
                if counted is not None:
                    with part("model", "vectorizer"):
                        names = counted.vocabulary(texts.iloc[learned].tolist())
                self._check_model(names, target)
            else:
                names = [*map(str, rows.features)]
                with mistakes.noted():
                    with part("data"):
                        features = tuple(map(str, _columns(data, rows.features).names))
                    own = sized(n_columns=len(names), features=features)
                    self._check_sizes(replace(own, columns=tuple(names)))
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
        """Refuse a model that cannot learn the target, or not give its output."""
        spec = self.schema.model
        if spec is None:
            return
        with part("model"):
            model, n_columns = self._estimator(columns), len(columns)
            check_learning(model, spec, target, n_columns, refits=self.job.refits)

    def _check_missing(self, columns: list[str]) -> None:
        """Refuse columns with missing numbers, where what is explained takes none."""
        if self.schema.model is not None:
            with part("model"):
                self.schema.model.check_missing(columns)
        elif columns:
            message = f"a formula takes no missing numbers: {listed(columns)}"
            raise wrong(message, "data", "csv")

    def _estimator(self, columns: Sequence[str], *, is_seeded: bool = True) -> Any:
        """One that is fitted or not, or a callable; None of a formula."""
        schema, data, spec = self.schema, self.schema.data, self.schema.model
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
        """The table of the file, if it has one."""
        data = self.schema.data
        return read_rows(data, self.source.path.parent) if data.is_table else None

    @cached_property
    def _task(self) -> LearningTask | None:
        """What the model learns, as said or as all values of the target show."""
        spec, table = self.schema.model, self._table
        target = None if table is None else table.target
        return None if spec is None else task_of(spec, self.schema.data.sklearn, target)

    @property
    def told(self) -> tuple[str, ...]:
        """What was inferred of the task, and how its CSV is read otherwise."""
        data, task, table = self.schema.data, self._task, self._table
        words = "" if table is None else table.told
        return words, "" if task is None else task.in_words(data.target)

    def function_of(self, table: Any, target: Any, known: Any) -> ModelFunction:
        """The formula, or the model, fitted to a table if it is not yet."""
        if self.schema.function is not None:
            return ModelFunction(self.schema.function.build())
        wrapped = partial(self._wrapped, table, known)
        with self.source.locating_errors("model"):
            model = self._estimator(_names(table))
            return learn(model, table, target, wrapped, self.schema.seed)

    def _wrapped(self, table: Any, known: Any, model: Any) -> Function:
        spec, outcome = self.schema.model, self.schema.data.outcome
        assert spec is not None  # by the schema
        function = wrap(
            model, spec.chosen_class, spec.output, data=known, outcome=outcome
        )
        if getattr(model, "is_flat", False):
            function = replace(function, piecewise_constant=True)  # type: ignore[type-var]
        spec.check_table(model, table)
        return function


def settings_in_words(section: Section | None, unused: Iterable[str] = ()) -> str:
    """All settings of a model or a scheme, defaults too, but some."""
    if section is None:
        return ""
    return _settings(section.model_dump(exclude_none=True, exclude={*unused}))


def _settings(values: dict[str, Any]) -> str:
    """The kind, and each setting; a section in it stands in brackets."""
    told = [
        f"{name} ({_settings(value)})" if isinstance(value, dict) else f"{name} {value}"
        for name, value in values.items()
        if name != "kind"
    ]
    return ", ".join([str(values["kind"]), *told] if "kind" in values else told)


def _names(table: Any) -> list[str]:
    """Those of columns; documents have none."""
    if isinstance(table, pd.Series):
        return []
    names = list(table) if isinstance(table, pd.DataFrame) else range(table.shape[1])
    return [str(name) for name in names]


def check_table(source: Source) -> None:
    """Refuse a table that cannot be, whatever else is wrong with the file."""
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

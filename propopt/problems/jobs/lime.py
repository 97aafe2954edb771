"""``propopt lime``: exact limits of LIME at rows, and a diagnosis of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from pydantic import Field

from propopt.base.document import Document
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.files import write_csv
from propopt.base.text import Reason, plural
from propopt.explaining.explainers import ExactLime
from propopt.functions import Function
from propopt.functions.wrapping import opened
from propopt.functions.wrapping_texts import word_rule_of
from propopt.lime import (
    LimeDocuments,
    LimeExplanation,
    TextLaw,
    limits,
    text_limits,
)
from propopt.lime.explaining import output_of_lime
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.named import law_named
from propopt.problems.jobs.job import (
    MOST_SHOWN,
    JobOutput,
    JobRun,
    JobSection,
    Writer,
    figure_file,
    manifest,
)
from propopt.problems.losses import (
    BANDWIDTH,
    LAW,
    Bins,
    Samples,
)
from propopt.problems.sections import (
    MOST_NUMBERS,
    Count,
    KernelWidths,
    Positive,
    Shaped,
    listed_values,
    section_of,
    wrong,
)
from propopt.problems.subject.data import ProblemFile
from propopt.problems.subject.subject import Subject
from propopt.tables.documents import PatternWords, WordRule
from propopt.tables.frames import listed


RowNumber: TypeAlias = Annotated[int, Field(ge=0, le=MOST_NUMBERS)]
RowChoice: TypeAlias = Annotated[
    Count | Annotated[list[RowNumber], Field(min_length=1)],
    Shaped("a number of rows, or a list of row numbers"),
]


# ---- The job of ``lime``: rows of a table, or documents


@partial(
    section_of,
    ExactLime,
    without=("units", "data"),
    law=(
        LAW,
        "bins weighted by bits, as in the lime package; or normal numbers weighted by "
        "distance; estimated from the rows of the fit",
    ),
    n_bins=Bins,
    kernel_width=(
        Positive | None,
        "for tables; by default that of lime, 0.75 √D",
    ),
    n_samples=(
        Annotated[Samples, Field(ge=2)],
        "of one run of LIME, for its noise and its mean; draws around each row if "
        "there is no exact limit",
    ),
)
class LimeSection(JobSection):
    """Limits of LIME at some rows, by :func:`propopt.lime.limits`.

    ==================== ==============================================================
    ``<name>_lime.csv``  a line for each row and feature: bin, coefficient, the scatter
                         of one run, the mean of runs; of documents for each word
    ``<name>_diagnosis.csv``
                         their diagnosis: :meth:`LimeDiagnosis.to_frame`
    ``<name>_path.csv``  coefficients at each kernel width of ``path``, if there is one;
                         for documents at each bandwidth
    ``<name>.svg``       the first rows: coefficients with the noise of one run, and
                         over kernel widths, with changes of sign, where there are some
    ``<name>.html``      of documents: their texts with words highlighted; with
                         ``--report`` a page of the result
    ``<name>.npz``       the explanation, by its ``save``
    ``<name>.json``      the settings, the quantity and the score of the model
    ==================== ==============================================================
    """

    key = command = "lime"
    suffixes: ClassVar[tuple[str, ...]] = (
        "_lime.csv",
        "_diagnosis.csv",
        "_path.csv",
        ".svg",
        ".html",
        ".npz",
        ".json",
    )

    rows: RowChoice = Field(
        5,
        description="the number of rows to explain, from the first; or a list of row "
        "numbers of the table, from 0, which may be rows of the fit",
    )
    bandwidth: Positive = Field(0.25, description=BANDWIDTH)
    words: Literal["lime", "model"] = Field(
        "lime",
        description="for documents, the words that are deleted: those of the lime "
        "package, or those that the model counts",
    )
    path: KernelWidths | None = Field(
        None,
        description="kernel widths at which coefficients are written too; bandwidths "
        "for documents",
    )
    diagnose: bool = Field(
        True, description="diagnose the coefficients, which takes some time"
    )

    of_texts: ClassVar[frozenset[str]] = frozenset({"bandwidth", "words"})
    of_tables: ClassVar[frozenset[str]] = frozenset(
        {"law", "n_bins", "weights", "kernel_width"}
    )

    def conflicts(self) -> Iterator[PropoptError]:
        if self.settings()["law"] == "gaussian":
            yield from self.without_effect("law: gaussian", "weights")

    def output_of(self, model: Any, target: Any, output: Any) -> Any:
        return output_of_lime(opened(model), target, output)

    def check_formula(self, function: Function, points: Any) -> None:
        function.value(points)

    def build(self, subject: Subject) -> LimeLaw:
        """The law around rows, estimated from the rows of the fit."""
        settings = self.settings()
        return law_named(
            settings["law"],
            subject.others,
            subject.function.schema,
            n_bins=settings["n_bins"],
            weights=settings["weights"],
            kernel_width=settings["kernel_width"],
        )

    def solve(self, file: ProblemFile, progress: bool | None = None) -> LimeExplanation:
        """Limits of the coefficients, for rows or documents."""
        subject = file.subject
        function = file.subject.function
        how: dict[str, Any] = {
            "n_samples": self.settings()["n_samples"],
            "rng": file.schema.seed,
            "progress": progress,
        }
        X, names = _rows(subject, self.rows)
        if subject.is_text:
            law = TextLaw(self.bandwidth)
            return text_limits(function, X, law, words=self._words(subject), **how)
        result = limits(function, X, self.build(subject), data=subject.others, **how)
        if result.labels.points is None and names is not None:
            return replace(result, labels=replace(result.labels, points=names))
        return result

    def _words(self, subject: Subject) -> WordRule:
        """The rule for words that are deleted."""
        if self.words == "lime":
            return PatternWords()
        rule = word_rule_of(subject.estimator)
        if isinstance(rule, Reason):
            message = f"words of the model are not available: {rule.reason}; use lime"
            raise wrong(message, self.key, "words")
        return rule

    def outputs(self, result: LimeExplanation, run: JobRun) -> Iterator[JobOutput]:
        file: ProblemFile = run.file
        widths = [] if self.path is None else listed_values(self.path)
        writers: dict[str, Writer] = {"_lime.csv": result.to_csv}
        rules = None
        more = []
        if self.diagnose:
            diagnosis = result.diagnose()
            writers["_diagnosis.csv"] = diagnosis.to_csv
            rules = dict(Counter(finding.rule for finding in diagnosis.findings))
            more = [diagnosis.document()]
        if widths:
            writers["_path.csv"] = lambda path: write_csv(
                path, path_frame(result, widths), names_of_rows=False
            )
        writers[".svg"] = partial(write_lime_figure, result, widths, file.name)
        if isinstance(result, LimeDocuments):
            writers[".html"] = result.plot.text(result.row_names[:MOST_SHOWN]).to_html
        writers[".npz"] = result.save
        content = {
            **manifest(file.subject),
            "lime": self._manifest_entries(result),
            "findings": rules,
        }
        rows = result.row_names
        rest = len(rows) - _ROWS
        notes = [f"{plural(rest, 'more row')} in the files"] if rest > 0 else []
        shown = [result.document(row) for row in rows[:_ROWS]]
        yield JobOutput(writers, content, notes, [*shown, *more])

    def documents(
        self, result: LimeExplanation, file: ProblemFile
    ) -> Sequence[Document]:
        del file
        diagnosis = [result.diagnose().document()] if self.diagnose else []
        return [result.document(), *diagnosis]

    def _manifest_entries(self, result: LimeExplanation) -> dict[str, Any]:
        """Entries of the manifest, with None for NaN."""
        facts: dict[str, Any] = {
            "law": result.law_in_words,
            "rows": list(result.row_names),
            "prediction": _finite_or_none(result.values),
            "base": _finite_or_none(result.base),
            "sampling_error": result.sampling_error,
            "intercept": _finite_or_none(result.intercept),
            "surrogate_at_row": _finite_or_none(result.at_row),
            "n_samples": result.n_samples,
            "units": result.units,
            "evaluations": result.evaluations,
        }
        if isinstance(result, LimeDocuments):
            unused = self.of_tables
            facts["sources"] = list(result.sources)
            facts["reasons"] = [reason or None for reason in result.reasons]
            facts["n_words"] = [len(words) for words in result.words]
        else:
            unused = self.of_texts
            facts["source"] = result.source
            facts["reason"] = result.reason or None
            facts["mean_weight"] = result.mean_weight.tolist()
            facts["effective_share"] = result.effective_share.tolist()
        settings = self.model_dump(exclude_none=True, exclude=set(unused))
        return {"settings": settings, **facts}


_ROWS: Final = 5
"""Number of rows that are printed."""


def _finite_or_none(numbers: Any) -> list[float | None]:
    return [None if math.isnan(x) else float(x) for x in numbers]


def _rows(
    subject: Subject, rows: int | Sequence[int]
) -> tuple[Any, tuple[int, ...] | None]:
    """The rows of a table, and their numbers if they have no names."""
    if isinstance(rows, int):
        if rows > len(subject.points):
            raise InvalidInput(
                f"rows: expected at most {len(subject.points)}, the number of rows to "
                f"explain, got {rows}"
            )
        return subject.points[:rows], None
    names = tuple(rows)
    table: Any = subject.all_points
    if not subject.is_text:
        table = pd.DataFrame(table)
    unknown = [row for row in names if row not in table.index]
    if unknown:
        raise InvalidInput(f"rows: the table has no row {listed(unknown)}")
    return table.loc[list(names)], names


# ---- Output files: a figure of the first rows, and coefficients by width


DRAWN_ROWS: Final = 3
"""Number of rows in the figure; more would make its text too small."""


def write_lime_figure(
    result: LimeExplanation, widths: Sequence[float], name: str, path: str
) -> None:
    """Draw coefficients of the first rows, and their paths over kernel widths."""
    draw: list[Callable[..., Any]] = [result.plot]
    named = zip(result.row_names, result.records, strict=True)
    rows = [name for name, row in named if row.has_coefficients]
    is_path = isinstance(result, LimeDocuments) or result.is_exact
    along = partial(result.plot.path, widths=widths)
    draw += [along] if is_path and len(widths) > 1 else []
    shown = rows[:DRAWN_ROWS]
    size = (5.6 * len(draw), 0.6 + 3.6 * len(shown))
    with figure_file(path, name, size) as figure:
        panels = figure.subplots(len(shown), len(draw), squeeze=False)
        for row, line in zip(shown, panels, strict=True):
            for one, axes in zip(draw, line, strict=True):
                one(row, ax=axes)


def path_frame(result: LimeExplanation, widths: Sequence[float]) -> pd.DataFrame:
    """A table by row, kernel width and feature; or document, bandwidth and word."""
    if isinstance(result, LimeDocuments):
        head = ("document", "bandwidth", "word")
        named = zip(result.row_names, result.records, strict=True)
        return pd.concat(
            _long(head, [name], sorted(widths), row.names, result.path(name, widths))
            for name, row in named
            if row.has_coefficients
        )
    subject = result.require_subject("path")
    N = len(result.values)
    points = np.repeat(subject.points, len(widths), axis=0)
    at = subject.limits(points, np.tile(np.asarray(widths, float), N))
    features = result.labels.feature_names(result.shape[1])
    head = ("row", "kernel_width", "feature")
    return _long(head, result.row_names, widths, features, at)


def _long(
    head: tuple[str, str, str],
    rows: Sequence[Hashable],
    widths: Any,
    features: Sequence[str],
    path: Any,  # coefficients (N·M, D) and their standard errors
) -> pd.DataFrame:
    """A long table of coefficients, ordered by row and width."""
    errors = path.standard_errors
    index = pd.MultiIndex.from_product([rows, widths, features], names=head)
    return index.to_frame(index=False).assign(
        coefficient=path.coefficients.ravel(),
        standard_error=0.0 if errors is None else errors.ravel(),
    )

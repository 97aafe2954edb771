"""``propopt explain``: one explanation with stated defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from propopt.base.checks import largest_entry
from propopt.base.document import Document
from propopt.base.errors import PropoptError
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.explainer import Explainer, explain
from propopt.explaining.problem import Sampling, Settings
from propopt.explaining.targets import LawChoice
from propopt.functions import Function
from propopt.lime import TextLaw
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    model_manifest,
    page_writers,
    row_table_writer,
)
from propopt.problems.losses import PointGraph
from propopt.problems.sections import (
    Nonnegative,
    Positive,
    Section,
    Shaped,
    Smaller,
    part,
    section_of,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, ProblemFile
from propopt.problems.subject.subject import Subject
from propopt.results.explained_table import ExplainedTable
from propopt.results.explanation import Explanation
from propopt.results.reasons import Reasons
from propopt.tables.arrow_files import ArrowFiles


_OF_DRAWS = ("precision", "max_evaluations")


@partial(
    section_of,
    Explanation.reasons,
    without=("rows", "models"),
    groups=(
        dict[str, list[str]] | None,
        "features that count as one reason: lists by the name of the group",
    ),
    small_change=(
        Nonnegative | None,
        "the change of attributions that a clear reason withstands, in the unit of the "
        "output; by default 5 % of the root mean square size of a row",
    ),
)
class ReasonsSection(Section):
    """The largest contributions of each row towards a decision."""

    refits: int = Field(
        0,
        ge=0,
        description="number of refits of the model to bootstrap samples, such as 10, "
        "by which reasons are stable or not; 0: not tested",
    )


@partial(
    section_of,
    Settings,
    documented_by=Explainer,
    also=Sampling,
    without=(
        "target",
        "output",
        "outcome",
        "sample_weight",
        "sampling",
        "batch_rows",
        "rng",
    ),
    scale=Literal["std", "none"] | dict[str, Positive],
    graph=(PointGraph | None, "similar rows; by default the eight nearest of each"),
    robustness=Annotated[
        Nonnegative | Literal["knee"] | Smaller | None,
        Shaped("a weight, knee, or a share such as -50%"),
    ],
    offset=Literal["auto", "main_effects"] | None,
    law=(
        Literal[LawChoice, "lime"],
        "how the model is smoothed before its slopes are computed: by observed values "
        "around each row, by gaussian noise, or not; by default by observed values if "
        "it jumps. For documents none (effects of words, the default) or lime (limits "
        "of the lime package)",
    ),
    contributions=ContributionChoice,
    groups=dict[str, list[str]] | Literal["auto"] | None,
)
class ExplainSection(JobSection):
    """One explanation, by the defaults of :func:`propopt.explain`.

    ===================== =============================================================
    ``<name>.npz``        the explanation: :meth:`Explanation.save`
    ``<name>_attributions.csv``
                          its attributions with their names: :meth:`Explanation.to_csv`
    ``<name>_reasons.csv``
                          with ``reasons``: :meth:`Reasons.to_csv`, a line for each
    ``.parquet``              instead of both, if ``data`` is ``parquet``
    ``<name>.html``       of documents: the first with their words highlighted; with
                          ``--report`` a page of the result
    ``<name>.json``       the settings, the quantity and the score of the model
    ``<name>_rows``       with ``rows``: a folder of attributions; the ``.npz`` has the
                          means of all rows (:class:`ExplainedTable`)
    ===================== =============================================================
    """

    key = command = "explain"
    weighs_rows = True
    suffixes: ClassVar[tuple[str, ...]] = (
        ".npz",
        "_attributions.csv",
        "_reasons.csv",
        "_attributions.parquet",
        "_reasons.parquet",
        ".html",
        ".json",
    )

    rows: str | None = Field(
        None,
        description="a file or folder of Parquet or Arrow, perhaps larger than memory; "
        "its rows are explained one by one, into a folder of Parquet",
    )
    reasons: ReasonsSection | None = Field(
        None,
        description="the largest contributions of each row towards a decision, and "
        "whether they are clear; of kind: contributions; {} takes all defaults",
    )

    of_tables: ClassVar[frozenset[str]] = frozenset({"metric", "offset", "groups"})

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        if self.rows is None:
            return
        data = schema.data
        if self.reasons is not None:
            message = "rows and reasons: reasons are of the rows of data; leave one out"
            yield wrong(message, self.key, "rows")
        if data.text or data.standardize or not data.file:
            needs = "needs data.csv or parquet, in its own units, and no data.text"
            yield wrong(f"rows of a large table: this {needs}", self.key, "rows")

    def check_formula(self, function: Function, points: Any) -> None:
        function.gradient(points)

    def build(self, subject: Subject) -> dict[str, Any]:
        """Arguments of ``explain`` from the settings of the section."""
        options = self.settings("reasons", "rows")
        if options["scale"] == "none":
            options["scale"] = None
        if options["law"] == "lime":
            options["law"] = TextLaw()
        draws = {name: options.pop(name) for name in _OF_DRAWS}
        if options["graph"] is not None:
            X = subject.coordinates
            options["graph"] = options["graph"].build(X, len(X))
        return {**options, "sampling": Sampling(**draws, rng=subject.seed)}

    def run(
        self,
        file: ProblemFile,
        folder: str | Path,
        *,
        quiet: bool = False,
        verbose: bool = False,
    ) -> Any:
        """Explain the rows of the file, or those of a large table into a folder."""
        if self.rows is None:
            return super().run(file, folder, quiet=quiet, verbose=verbose)
        files = file.files
        suffixes = (".npz", ".json", *[".html"] * file.report)
        run = JobRun.of_file(file, suffixes, files, folder, quiet=quiet)
        run.verbose = verbose
        return run.do(partial(self._solve_rows, file, run), partial(self._rows, run))

    def _solve_rows(self, file: ProblemFile, run: JobRun) -> ExplainedTable:
        """Explain the rows of a large table, or the rest of them."""
        assert self.rows is not None, "it is run for them"
        folder = Path(f"{run.target}_rows")
        path = file.source.path.parent / self.rows
        with part(self.key, "rows"):
            ArrowFiles.of(path)  # refused before the model is fitted
        self.introduce(file, run)
        subject = file.subject
        settings = self.build(file.subject)
        explainer = Explainer(
            subject.function,
            subject.others,
            sample_weight=subject.sample_weight,
            **settings,
        ).fit(progress=run.progress)
        try:
            with part(self.key, "rows"):
                return explainer.explain(
                    path, to=folder, scheduler=file.scheduler, progress=run.progress
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; finished parts stay in {folder}, and the same command "
                "with --resume continues"
            ) from None

    def _rows(self, run: JobRun, result: ExplainedTable) -> Iterator[JobOutput]:
        """The summary of all rows, and where the rows are."""
        file = run.file
        header = result.header
        content = {
            **model_manifest(file),
            "units": result.units_in_words,
            "rows": {
                "folder": Path(result.folder).name,
                "n_rows": header.n_rows,
                "columns": [*header.columns],
                "gap": result.gap,
            },
        }
        lines = [f"rows: {result.folder}"]
        writers: dict[str, Any] = {".npz": result.save}
        if file.report:
            writers[".html"] = result.to_html
        yield JobOutput(writers, content, lines, [result.document()])

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Explanation:
        """The explanation, by :func:`propopt.explain`."""
        subject = file.subject
        explained = explain(
            subject.function,
            subject.points,
            subject.others,
            sample_weight=subject.sample_weight,
            progress=progress,
            **self.build(subject),
        )
        return replace(explained, model_seconds=0.0)  # a resumed run has equal pages

    def outputs(self, result: Explanation, run: JobRun) -> Iterator[JobOutput]:
        file: ProblemFile = run.file
        aims = (result.parameters.get(name) for name in ("gradient", "contributions"))
        content = {
            **model_manifest(file, result, str(next(filter(None, aims)))),
            "units": result.units_in_words,
            **_output_parts(result),
        }
        page = page_writers(result, file.subject)
        suffix, writer = row_table_writer(result, file)
        writers = {".npz": result.save, f"_attributions{suffix}": writer, **page}
        yield JobOutput(writers, content, [], [result.document()])
        for reasons in self._reasons(result, file):
            suffix, writer = row_table_writer(reasons, file)
            writers = {f"_reasons{suffix}": writer}
            content = {"reasons": _reasons_manifest(reasons)}
            yield JobOutput(writers, content, _sheets(reasons), [reasons.document()])

    def documents(self, result: Any, file: ProblemFile) -> Sequence[Document]:
        documents = super().documents(result, file)
        return [*documents, *(x.document() for x in self._reasons(result, file))]

    def _reasons(self, result: Any, file: ProblemFile) -> Iterator[Reasons]:
        """The reasons of the rows, if they are requested."""
        if self.reasons is not None and self.rows is None:
            with part(self.key, "reasons"):
                best = _in_original_units(result, file.subject.unscaled)
                settings = self.reasons.settings("refits")
                models = _refits(file, self.reasons.refits)
                yield best.reasons(**settings, models=models)


@lru_cache(maxsize=1)
def _refits(file: ProblemFile, times: int) -> list[Function] | None:
    """Refits of the model of a file, made once for its files and its page."""
    with part("refits"):
        return file.refits(times) if times else None


_SHEETS: Final = 10
"""Number of rows with printed reasons."""


def _sheets(reasons: Reasons) -> list[str]:
    """Lines with the reasons of the first rows."""
    lines: list[str] = []
    if len(reasons.names) == 1:  # its document has them
        return lines
    for sheet in islice(reasons.sheets(), _SHEETS):
        lines += ["", *sheet.split("\n")]
    more = len(reasons.names) - _SHEETS
    return [*lines, f"{more:,} more"] if more > 0 else lines


def _in_original_units(best: Explanation, unscaled: pd.DataFrame | None) -> Explanation:
    """The explanation with original values instead of standardized ones."""
    if unscaled is None or best.points is None:
        return best
    points = np.array(best.points)
    for j, name in enumerate(best.to_frame().columns):
        if name in unscaled:
            points[:, j] = unscaled[name].to_numpy(float, na_value=np.nan)
    return replace(best, points=points)


def _reasons_manifest(reasons: Reasons) -> dict[str, Any]:
    """Entries of the manifest on reasons."""
    names = ("k", "towards", "least_share", "small_change", "clear_rows", "n_models")
    fields = {name: getattr(reasons, name) for name in names}
    error = reasons.sampling_error
    return {**fields, "sampling_error": None if np.isnan(error) else error}


def _output_parts(best: Explanation) -> dict[str, Any]:
    """Base and predictions, if attributions add up to their difference."""
    bases = best.base_value
    values = best.prediction
    gap = best.additivity_error
    if bases is None or values is None or gap is None:
        return {}
    return {
        "base_value": float(bases[0]) if np.ptp(bases) == 0.0 else bases.tolist(),
        "prediction": values.tolist(),
        "additivity_error": largest_entry(gap),
    }

"""``propopt audit``: attributions from elsewhere, and whether they are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import Field

from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.files import write_csv
from propopt.explaining.audit import audit
from propopt.problems.jobs.job import Answer, JobSection, digest_of_file, manifest
from propopt.problems.sections import (
    Count,
    Finite,
    Nonnegative,
    Section,
    part,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, Extent, ProblemFile
from propopt.problems.subject.tables import CsvTable, read_columns, weights_of_table
from propopt.results.audit import Audit
from propopt.results.record import Decision, Record
from propopt.tables.imported import SUFFIXES


class DecisionSection(Section):
    """What follows from a prediction on either side of a threshold."""

    makes = Decision

    threshold: Finite = Field(description="in the unit of the predictions")
    below: str = Field("below", description="the decision below the threshold")
    above: str = Field(
        "at or above", description="the decision at the threshold and above"
    )


class AuditSection(JobSection):
    """Attributions from elsewhere, asked in an auditor's order: :func:`propopt.audit`.

    ===================== =============================================================
    ``<name>.npz``        the audit: :meth:`Audit.save`
    ``<name>_findings.csv``
                          a row for each question: sentence, number, unit, verdict
    ``<name>_causes.csv`` the pairs and rows that cause most of what could go
    ``<name>_exact.csv``  the exact values and their base, where they are known
    ``<name>.json``       what was audited and how
    ===================== =============================================================
    """

    key = command = "audit"
    weighs_rows = True
    suffixes: ClassVar[tuple[str, ...]] = (
        ".npz",
        "_findings.csv",
        "_causes.csv",
        "_exact.csv",
        ".json",
    )

    attributions: str | None = Field(
        None,
        description="path, from that of this file, of a .csv or .npz with a number for "
        "each row and column of the table; the command line may name another",
    )
    output: Literal["log_odds", "probability", "margin", "value"] | None = Field(
        None,
        description="the output whose parts the numbers are; required for classifiers",
    )
    base: Finite | None = Field(
        None, description="what the numbers are added to, where their file has no base"
    )
    data: str | None = Field(
        None,
        description="path of a CSV with the background rows; by default the audited "
        "rows",
    )
    n_neighbors: Count = Field(8, description="how many rows each is compared with")
    tolerance: Nonnegative | None = Field(
        None,
        description="by how much a value may differ from the exact one, and a sum from "
        "the prediction, for its row to pass",
    )
    decision: DecisionSection | None = Field(
        None, description="a threshold on predictions: what is decided in each row"
    )
    details: bool = Field(
        False, description="whether all questions are printed, not six lines"
    )

    def mistakes(self, schema: CommonKeys) -> Iterable[PropoptError]:
        data = schema.data
        if data.text is not None:
            yield wrong("words of documents cannot be audited; take a table", "data")
        if data.explain is not None:
            yield wrong("all rows are audited; leave it out", "data", "explain")
        if data.standardize:
            told = "numbers are of the columns as they are; leave it out"
            yield wrong(told, "data", "standardize")

    def check(self, extent: Extent) -> None:
        for key in ("attributions", "data"):
            name = getattr(self, key)
            if name is None:
                continue
            path = extent.folder / name
            if not path.is_file():
                raise wrong(f"there is no file {path}", key)
            if key == "attributions" and path.suffix.lower() not in SUFFIXES:
                raise wrong(f"expected a .csv or .npz file, got {path.name}", key)

    def others_read(self, file: ProblemFile) -> Sequence[Path]:
        folder = file.source.path.parent
        named = (self.attributions, self.data)
        return [folder / name for name in named if name is not None]

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Audit:
        """The audit of all rows, in the order of the table."""
        del progress
        subject, folder = file.subject, file.source.path.parent
        X: Any = subject.points
        if isinstance(X, pd.DataFrame):
            X = X.sort_index()  # as the file has them
        with part(self.key):
            if self.attributions is None:
                raise wrong(
                    "required, and missing; or name the file behind this one: "
                    "propopt audit FILE ATTRIBUTIONS.csv",
                    "attributions",
                )
            data, weights = None, subject.sample_weight
            if self.data is not None:
                path, column = folder / self.data, file.schema.data.sample_weight
                with part("data"):
                    data = self._rows(path, file, list(X))
                    if column is not None:
                        table = CsvTable.of(path)
                        self._refuse_lacking(table, [column])
                        weights = weights_of_table(table, column)
            found = audit(
                folder / self.attributions,
                subject.function,
                X,
                data=data,
                sample_weight=weights,
                output=self.output,
                base=self.base,
                n_neighbors=self.n_neighbors,
                rng=file.schema.seed,
            )
        decision = None if self.decision is None else self.decision.model_dump()
        return found.to_sign(
            tolerance=self.tolerance,
            decision=None if decision is None else Decision(**decision),
            record=self._record(file, X, data),
        )

    def _record(self, file: ProblemFile, X: Any, data: Any) -> Record:
        """Date, versions, and digests of tables and of all files that were read."""
        files = [*file.files, *self.others_read(file)]
        digests = {
            f"file {path.name}": f"sha256:{digest_of_file(path)[:12]}"
            for path in dict.fromkeys(files)
            if path.is_file()
        }
        return Record.of(file.subject.estimator, X=X, data=data, digests=digests)

    def _rows(self, path: Path, file: ProblemFile, columns: list[Any]) -> Any:
        """The rows of a CSV with the columns of the table."""
        table = CsvTable.of(path)
        self._refuse_lacking(table, columns)
        return read_columns(table.read(columns), file.schema.data)[columns]

    @staticmethod
    def _refuse_lacking(table: CsvTable, columns: list[Any]) -> None:
        """Refuse a table without some of the columns."""
        lacking = [str(c) for c in columns if str(c) not in table.columns]
        if lacking:
            raise InvalidInput(f"{table.path.name} has no column {lacking[0]!r}")

    def answers(self, found: Audit, file: ProblemFile) -> Iterator[Answer]:
        writers: dict[str, Callable[[str], None]] = {
            ".npz": found.save,
            "_findings.csv": found.to_csv,
            "_causes.csv": lambda path: write_csv(
                path, found.causes_to_frame(), names_of_rows=False
            ),
        }
        if found.exact is not None:
            writers["_exact.csv"] = lambda path: write_csv(
                path, found.exact_to_frame(), names_of_rows=True
            )
        told = {
            **manifest(file.subject, None, gradient=None),
            "model": file.model,
            "findings": {x.name: x.verdict for x in found.findings},
            "settings": dict(found.settings),
        }
        yield Answer(writers, told, [], [found.document()])

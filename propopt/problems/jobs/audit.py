"""``propopt audit``: attributions from elsewhere, and whether they are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.files import write_csv
from propopt.explaining.audit import audit
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    digest_of_file,
    manifest,
)
from propopt.problems.sections import (
    Finite,
    Nonnegative,
    Section,
    part,
    section_of,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, DataShape, ProblemFile
from propopt.problems.subject.tables import CsvTable, check_weights, read_columns
from propopt.results.audit import Audit
from propopt.results.record import Decision, Record
from propopt.tables.imported import SUFFIXES


@partial(section_of, Decision, threshold=Finite, below=str, above=str)
class DecisionSection(Section):
    """What follows from a prediction on either side of a threshold."""


@partial(
    section_of,
    audit,
    also=Audit.to_sign,
    without=(
        *("self", "model", "X", "sample_weight", "target", "outcome", "graph"),
        *("rng", "record"),
    ),
    attributions=(
        str | None,
        "path, from that of this file, of a .csv or .npz with a number for each row "
        "and column of the table; the command line may name another",
        None,
    ),
    output=Literal["log_odds", "probability", "margin", "value"] | None,
    base=Finite | None,
    data=(
        str | None,
        "path of a CSV with the background rows; by default the audited rows",
    ),
    n_neighbors="how many rows each is compared with",
    tolerance=Nonnegative | None,
    decision=DecisionSection | None,
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

    def mistakes(self, schema: CommonKeys) -> Iterable[PropoptError]:
        data = schema.data
        if data.text is not None:
            yield wrong("words of documents cannot be audited; take a table", "data")
        if data.explain is not None:
            yield wrong("all rows are audited; leave it out", "data", "explain")
        if data.standardize:
            told = "numbers are of the columns as they are; leave it out"
            yield wrong(told, "data", "standardize")

    def check(self, data_shape: DataShape) -> None:
        for key in ("attributions", "data"):
            name = getattr(self, key)
            if name is None:
                continue
            path = data_shape.folder / name
            if not path.is_file():
                raise wrong(f"there is no file {path}", key)
            if key == "attributions" and path.suffix.lower() not in SUFFIXES:
                raise wrong(f"expected a .csv or .npz file, got {path.name}", key)

    def extra_files(self, file: ProblemFile) -> Sequence[Path]:
        folder, own = file.source.path.parent, self.settings()
        named = (own["attributions"], own["data"])
        return [folder / name for name in named if name is not None]

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Audit:
        """The audit of all rows, in the order of the table."""
        del progress
        subject, folder = file.subject, file.source.path.parent
        own = self.settings()
        decision, tolerance = own.pop("decision"), own.pop("tolerance")
        X: Any = subject.points
        if isinstance(X, pd.DataFrame):
            X = X.sort_index()  # as the file has them
        with part(self.key):
            if own["attributions"] is None:
                raise wrong(
                    "required, and missing; or name the file behind this one: "
                    "propopt audit FILE ATTRIBUTIONS.csv",
                    "attributions",
                )
            path, weights = folder / own.pop("attributions"), subject.sample_weight
            if own["data"] is not None:
                with part("data"):
                    background = folder / own["data"]
                    own["data"], weights = _background(background, file, list(X))
            found = audit(
                path,
                subject.function,
                X,
                sample_weight=weights,
                rng=file.schema.seed,
                **own,
            )
        return found.to_sign(
            tolerance=tolerance,
            decision=None if decision is None else decision.make(),
            record=self._record(file, X, own["data"]),
        )

    def _record(self, file: ProblemFile, X: Any, data: Any) -> Record:
        """Date, versions, and digests of tables and of all files that were read."""
        files = [*file.files, *self.extra_files(file)]
        digests = {
            f"file {path.name}": f"sha256:{digest_of_file(path)[:12]}"
            for path in dict.fromkeys(files)
            if path.is_file()
        }
        return Record.of(file.subject.estimator, X=X, data=data, digests=digests)

    def outputs(self, found: Audit, run: JobRun) -> Iterator[JobOutput]:
        file: ProblemFile = run.file
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
        yield JobOutput(writers, told, [], [found.document()])


def _background(path: Path, file: ProblemFile, columns: list[Any]) -> tuple[Any, Any]:
    """The rows of a CSV with the columns of the table, and their weights."""
    data, table = file.schema.data, CsvTable.of(path)
    weight = data.sample_weight
    asked = [*map(str, columns), *([] if weight is None else [weight])]
    lacking = [name for name in asked if name not in table.columns]
    if lacking:
        raise InvalidInput(f"{path.name} has no column {lacking[0]!r}")
    rows, weights = table.read(asked), None
    if weight is not None:
        weights = rows.pop(weight)
        check_weights(weights)
    return read_columns(rows, data)[columns], weights

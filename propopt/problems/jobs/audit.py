"""``propopt audit``: check attributions from other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.files import write_csv
from propopt.explaining.audit import audit
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    digest_of_file,
    model_manifest,
)
from propopt.problems.sections import (
    Finite,
    Nonnegative,
    Section,
    part,
    section_of,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, ProblemFile
from propopt.problems.subject.tables import FILE_TABLES, check_weights, read_columns
from propopt.results.audit import Audit
from propopt.results.record import Decision, Record
from propopt.tables.arrow_files import is_arrow, parts_of


DecisionSection: Final = section_of(
    Decision,
    Section,
    "DecisionSection",
    "The decisions below and above a threshold on predictions.",
    threshold=Finite,
    below=str,
    above=str,
)


@partial(
    section_of,
    audit,
    also=Audit.to_sign,
    without=(
        "self",
        "model",
        "X",
        "sample_weight",
        "target",
        "outcome",
        "graph",
        "rng",
        "record",
    ),
    attributions=(
        str | None,
        "path, from that of this file, of a .csv, .npz or .parquet with a number for "
        "each row and column of the table; the command line may name another",
        None,
    ),
    output=Literal["log_odds", "probability", "margin", "value"] | None,
    base=Finite | None,
    data=(
        str | None,
        "path of a CSV or Parquet file with the background rows; by default the "
        "audited rows",
    ),
    n_neighbors="number of similar rows that each row is compared with",
    tolerance=Nonnegative | None,
    decision=DecisionSection | None,
)
class AuditSection(JobSection):
    """Check attributions from other programs, by :func:`propopt.audit`.

    ===================== =============================================================
    ``<name>.npz``        the audit: :meth:`Audit.save`
    ``<name>_findings.csv``
                          a row for each check and number, with verdict and cause
    ``<name>_causes.csv`` the pairs of rows with most removable differences
    ``<name>_exact.csv``  the exact values and their base, if available
    ``<name>.json``       what was audited and how
    ===================== =============================================================
    """

    key = command = "audit"
    weighs_rows = True
    exit_code = 4
    suffixes: ClassVar[tuple[str, ...]] = (
        ".npz",
        "_findings.csv",
        "_causes.csv",
        "_exact.csv",
        ".json",
    )

    def mistakes(self, schema: CommonKeys) -> Iterable[PropoptError]:
        data = schema.data
        if data.explain is not None:
            yield wrong("all rows are audited; leave it out", "data", "explain")
        if data.standardize:
            message = "attributions belong to the original columns; leave it out"
            yield wrong(message, "data", "standardize")

    def extra_files(self, file: ProblemFile) -> Sequence[Path]:
        folder = file.source.path.parent
        settings = self.settings()
        names = (settings["attributions"], settings["data"])
        paths = [folder / name for name in names if name is not None]
        return [file for path in paths for file in parts_of(path)]

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Audit:
        """The audit of all rows, in the order of the table."""
        del progress
        subject = file.subject
        folder = file.source.path.parent
        settings = self.settings()
        decision = settings.pop("decision")
        tolerance = settings.pop("tolerance")
        X: Any = subject.points
        if settings["attributions"] is None:
            raise wrong(
                "required, unless given on the command line: "
                "propopt audit FILE ATTRIBUTIONS.csv",
                self.key,
                "attributions",
            )
        path = folder / settings.pop("attributions")
        data = settings.pop("data")
        weights = subject.sample_weight
        if data is not None:
            with part(self.key, "data"):
                data, weights = _background(folder / data, file, list(X))
        result = audit(
            path,
            subject.function,
            X,
            data=data,
            sample_weight=weights,
            rng=file.schema.seed,
            **settings,
        )
        return result.to_sign(
            tolerance=tolerance,
            decision=None if decision is None else decision.make(),
            record=self._record(file, X, data),
        )

    def _record(self, file: ProblemFile, X: Any, data: Any) -> Record:
        """Date, versions, and digests of the tables and of all input files."""
        files = [*file.files, *self.extra_files(file)]
        digests = {
            f"file {path.name}": f"sha256:{digest_of_file(path)[:12]}"
            for path in dict.fromkeys(files)
            if path.is_file()
        }
        return Record.of(file.subject.estimator, X=X, data=data, digests=digests)

    def is_whole(self, result: Audit, file: ProblemFile) -> bool:
        """Whether the numbers are exact: others fail a gate, and are audited again."""
        del file
        return result.verdict == "exact"

    def outputs(self, result: Audit, run: JobRun) -> Iterator[JobOutput]:
        file: ProblemFile = run.file
        writers: dict[str, Callable[[str], None]] = {
            ".npz": result.save,
            "_findings.csv": result.to_csv,
            "_causes.csv": lambda path: write_csv(
                path, result.causes_to_frame(), names_of_rows=False
            ),
        }
        if result.exact is not None:
            writers["_exact.csv"] = lambda path: write_csv(
                path, result.exact_to_frame(), names_of_rows=True
            )
        entries = {
            **model_manifest(file),
            "verdict": result.verdict,
            "checks": {x.name: x.verdict for x in result.findings if x.verdict},
            "numbers": {x.name: x.number for x in result.findings if not x.verdict},
            "settings": dict(result.settings),
        }
        yield JobOutput(writers, entries, [], [result.document()])


def _background(path: Path, file: ProblemFile, columns: list[Any]) -> tuple[Any, Any]:
    """The rows of a file with the columns of the table, and their weights."""
    data = file.schema.data
    table = FILE_TABLES["parquet" if is_arrow(path) else "csv"].of(path)
    weight = data.sample_weight
    names = [*map(str, columns), *([] if weight is None else [weight])]
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InvalidInput(f"{path.name} has no column {missing[0]!r}")
    rows = table.read(names)
    weights = None
    if weight is not None:
        weights = rows.pop(weight)
        check_weights(weights)
    return read_columns(rows, data)[columns], weights

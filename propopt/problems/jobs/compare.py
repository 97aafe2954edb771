"""``propopt compare``: what changed between two versions of a problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from propopt.base.arrays import Mask
from propopt.base.errors import ProblemFileError, PropoptError
from propopt.explaining.comparison import compare, shared_output
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.explainer import Explainer
from propopt.explaining.problem import Sampling, Settings
from propopt.explaining.targets import LawChoice
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    Writer,
    figure_file,
    model_manifest,
)
from propopt.problems.sections import Nonnegative, section_of, wrong
from propopt.problems.subject.data import CommonKeys, ProblemFile
from propopt.results.comparison import Comparison
from propopt.results.explanation import Explanation


@partial(
    section_of,
    Settings,
    documented_by=Explainer,
    without=(
        "target",
        "output",
        "outcome",
        "sample_weight",
        "graph",
        "scale",
        "sampling",
        "groups",
        "metric",
        "offset",
    ),
    contributions=ContributionChoice,
    law=LawChoice,
    robustness=(
        Nonnegative | None,
        "its weight in both; by default that at the knee of the old version",
    ),
)
class CompareSection(JobSection):
    """Compare the model of this file, the new version, with an old one.

    The rows are those that the old file explains.

    ========================= =========================================================
    ``<name>_comparison.npz`` the comparison: :meth:`Comparison.save`
    ``<name>_comparison.csv`` a row for each column: :meth:`Comparison.to_csv`
    ``<name>_comparison.svg`` distances, with those of refits
    ``<name>.html``           with ``--report`` a page of it
    ``<name>.json``           what was compared, and the flags
    ========================= =========================================================
    """

    key = command = "compare"
    weighs_rows = True
    suffixes: ClassVar[tuple[str, ...]] = (
        "_comparison.npz",
        "_comparison.csv",
        "_comparison.svg",
        ".html",
        ".json",
    )

    before: str = Field(
        description="path, from that of this file, of the problem file of the old "
        "version"
    )
    level: Literal["auto", "none"] = Field(
        "auto",
        description="what changes are compared with: 20 refits of each model on "
        "bootstrap samples of its table, if both can be fitted again, or nothing",
    )

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        if schema.data.standardize:
            message = "both versions would get different numbers for one row"
            remedy = "let the model scale them, or leave it out"
            yield wrong(f"{message}; {remedy}", "data", "standardize")

    def extra_files(self, file: ProblemFile) -> Sequence[Path]:
        return self.old(file).files

    def old(self, file: ProblemFile) -> ProblemFile:
        """The problem file of the old version, which may have any job."""
        assert file.read is not None, "the file was read by it"
        path = file.source.path.parent / self.before
        if not path.is_file():
            message = f"there is no file {self.before}, the old version"
            raise file.source.error((self.key, "before"), message)
        old = file.read(path, file.code)
        for error in self.mistakes(old.schema):
            raise old.source.located(error)
        return old

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Comparison:
        """The comparison, by :func:`propopt.compare`."""
        old, file = _in_one_unit([self.old(file), file])
        before = old.subject
        after = file.subject
        with file.source.locating_errors(self.key):
            new = after.function
            if before.columns is not None:  # rows have their codes
                new = file.function_of(
                    after.others, after.others_target, before.columns
                ).function
            settings: dict[str, Any] = {x: getattr(self, x) for x in _SETTINGS}
            return compare(
                before.function,
                new,
                before.points,
                data=before.others,
                sample_weight=before.sample_weight,
                level=self.refitted([old, file]),
                sampling=Sampling(rng=old.schema.seed),
                progress=progress,
                **settings,
            )

    def refitted(self, files: Sequence[ProblemFile]) -> Any:
        """Refits of both models on samples of their tables; None if one has none."""
        if self.level == "none" or not all(file.can_refit for file in files):
            return None
        columns = files[0].subject.columns
        level = []
        for file in files:
            with file.source.locating_errors("model"):
                level.append(file.refits(20, columns))
        return level

    def outputs(self, result: Comparison, run: JobRun) -> Iterator[JobOutput]:
        file: ProblemFile = run.file
        entries = {
            **model_manifest(file),
            "before": self.before,
            **_entries(result),
        }
        yield JobOutput(_writers(result, file.name), entries, [], [result.document()])


def _in_one_unit(files: list[ProblemFile]) -> list[ProblemFile]:
    """Both files; in probability if they chose no output, and their defaults differ."""
    chosen = {file.schema.model and file.schema.model.output for file in files}
    if chosen != {"auto"}:
        return files
    kinds = [file.subject.function.quantity.kind for file in files]
    output = shared_output("auto", kinds, [file.subject.estimator for file in files])
    return files if output == "auto" else [x.with_output(output) for x in files]


_SETTINGS: Final = ("kind", "contributions", "law", "robustness")


def _entries(result: Comparison) -> dict[str, Any]:
    """The entries of the manifest for a comparison."""

    def named(flags: Mask) -> list[str]:
        pairs = zip(result.features, flags.tolist(), strict=True)
        return [name for name, is_flagged in pairs if is_flagged]

    entries = {"sources": list(result.sources), "parameters": dict(result.parameters)}
    if result.level is None:
        return entries
    return {
        "level": result.level.source,
        "distance_flagged": named(result.distance_flagged),
        "size_flagged": named(result.size_flagged),
        "total_flagged": result.total_flagged,
        "base_flagged": result.base_flagged,
        **entries,
    }


def _writers(result: Comparison, name: str) -> dict[str, Writer]:
    """Writers of the archive, the table and the picture, by suffix."""

    def draw(path: str) -> None:
        size = (6.4, 1.6 + 0.3 * min(len(result.features), 15))
        with figure_file(path, name, size) as figure:
            result.plot(ax=figure.subplots())

    return {
        "_comparison.npz": result.save,
        "_comparison.csv": result.to_csv,
        "_comparison.svg": draw,
    }


# ---- Two files of the command line: problems, or explanations that were saved


def comparison_problem(old: ProblemFile, new: ProblemFile) -> ProblemFile:
    """The new problem, with the comparison with the old one as its job."""
    others = dict.fromkeys(("explain", "lime", "interactions", "audit"))
    section: Any = CompareSection
    job = section(before=str(old.source.path.resolve()))
    schema = new.schema.model_copy(update={**others, "compare": job})
    for error in job.mistakes(schema):
        raise new.source.located(error)
    return replace(new, schema=schema)


def compare_archives(
    old: Path,
    new: Path,
    folder: str | Path,
    *,
    quiet: bool = False,
    verbose: bool = False,
    report: bool = False,
) -> Comparison:
    """Compare two saved explanations by their targets, and write the findings.

    Raises
    ------
    ProblemFileError
        If a file is missing or invalid, or rows differ; the message names it.
    """
    run = JobRun(
        "compare", new.stem, CompareSection.suffixes, (old, new), folder, quiet=quiet
    )
    run.verbose = verbose

    def solve() -> Comparison:
        versions = []
        for path in (old, new):
            try:
                versions.append(Explanation.load(path))
            except FileNotFoundError:
                raise ProblemFileError(f"there is no file {path}") from None
        return compare(*versions)

    def outputs(result: Comparison) -> Iterator[JobOutput]:
        entries = {"before": str(old), "after": str(new), **_entries(result)}
        writers = _writers(result, new.stem)
        if report:
            writers[".html"] = result.to_html
        yield JobOutput(writers, entries, [], [result.document()])

    result: Comparison = run.do(solve, outputs)
    return result

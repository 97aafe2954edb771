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
from propopt.base.files import write_svg
from propopt.base.text import printable
from propopt.explaining.comparison import compare
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.explainer import Explainer
from propopt.explaining.null_models import NullModels, split_half_refits
from propopt.explaining.problem import Sampling, Settings
from propopt.explaining.targets import LawChoice
from propopt.problems.jobs.job import JobOutput, JobRun, JobSection, Writer, manifest
from propopt.problems.sections import Nonnegative, section_of, wrong
from propopt.problems.subject.data import CommonKeys, DataShape, ProblemFile
from propopt.problems.subject.subject import Subject, is_unfitted
from propopt.results.comparison import Comparison
from propopt.results.explanation import Explanation
from propopt.tables.frames import listed


@partial(
    section_of,
    Settings,
    told=Explainer,
    without=(
        *("target", "output", "outcome", "sample_weight", "graph", "scale"),
        *("sampling", "groups", "metric", "offset"),
    ),
    contributions=ContributionChoice,
    law=LawChoice,
    robustness=(
        Nonnegative | None,
        "its weight in both; by default that at the knee of the old version",
    ),
)
class CompareSection(JobSection):
    """The model of this file, the new version, beside that of another, the old one.

    The rows are those that the old file explains.

    ========================= =========================================================
    ``<name>_comparison.npz`` the comparison: :meth:`Comparison.save`
    ``<name>_comparison.csv`` a row for each column: :meth:`Comparison.to_csv`
    ``<name>_comparison.svg`` distances beside those of refits
    ``<name>.html``           with ``--report`` a page of it
    ``<name>.json``           what was compared, and the sentences
    ========================= =========================================================
    """

    key = command = "compare"
    weighs_rows = True
    suffixes: ClassVar[tuple[str, ...]] = (
        *("_comparison.npz", "_comparison.csv", "_comparison.svg"),
        *(".html", ".json"),
    )

    before: str = Field(
        description="path, from that of this file, of the problem file of the old "
        "version"
    )
    level: Literal["auto", "none"] = Field(
        "auto",
        description="what columns are held against: refits of the old model on halves "
        "of its table, where its file fits it, or nothing",
    )

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        if schema.data.text is not None:
            message = "documents have no columns in common; tables can be compared"
            yield wrong(message, "data", "text")
        elif schema.data.standardize:
            yield wrong(_OTHER_NUMBERS, "data", "standardize")

    def check(self, data_shape: DataShape) -> None:
        _ = self._path(data_shape.folder)

    def extra_files(self, file: ProblemFile) -> Sequence[Path]:
        return self.old(file).files

    def _path(self, folder: Path) -> Path:
        path = folder / self.before
        if not path.is_file():
            raise wrong(
                f"there is no file {self.before}; expected the problem file of the "
                "old version",
                "before",
            )
        return path

    def old(self, file: ProblemFile) -> ProblemFile:
        """The problem file of the old version, which may have any job."""
        assert file.read is not None, "it was read itself"
        with file.source.locating_errors(self.key):
            path = self._path(file.source.path.parent)
        found = file.read(path, file.code)
        for error in self.mistakes(found.schema):
            raise found.source.located(error)
        return found

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Comparison:
        """The comparison, by :func:`propopt.compare`."""
        old = self.old(file)
        before, after = old.subject, file.subject
        with file.source.locating_errors(self.key):
            _refuse_other_columns(before, after)
            new = after.function
            if before.columns is not None:  # whose codes the rows have
                table, target = after.others, after.others_target
                new = file.function_of(table, target, before.columns).function
            own: Any = self
            how = {name: getattr(own, name) for name in _SETTINGS}
            return compare(
                before.function,
                new,
                before.points,
                data=before.others,
                sample_weight=before.sample_weight,
                level=self.refitted(old),
                sampling=Sampling(rng=old.schema.seed),
                progress=progress,
                **how,
            )

    def refitted(self, old: ProblemFile) -> NullModels | None:
        """Models of the old file, on halves of its table; None where none is fitted."""
        subject = old.subject
        learner = None if old.schema.model is None else subject.make_learner
        if self.level == "none" or learner is None or not is_unfitted(learner()):
            return None

        def fit(X: Any, y: Any) -> Any:
            return old.function_of(X, y, subject.columns).function

        return split_half_refits(
            fit, subject.others, subject.others_target, rng=subject.seed
        )

    def outputs(self, found: Comparison, run: JobRun) -> Iterator[JobOutput]:
        file: ProblemFile = run.file
        told = {
            **manifest(file.subject, None, gradient=None),
            "model": file.model,
            "before": self.before,
            **_said(found),
        }
        yield JobOutput(_writers(found, file.name), told, [], [found.document()])


_SETTINGS: Final = ("kind", "contributions", "law", "robustness")
_OTHER_NUMBERS: Final = (
    "each version would see other numbers in the same rows; let the model scale them, "
    "or leave it out"
)


def _refuse_other_columns(before: Subject, after: Subject) -> None:
    """Refuse a version that lost a column, or has one more."""
    old, new = (
        [*map(str, getattr(one.points, "columns", range(one.points.shape[1])))]
        for one in (before, after)
    )
    lost = [x for x in old if x not in new]
    more = [x for x in new if x not in old]
    if lost or more:
        parts = [f"the new version has no {listed(lost, 3)}"] if lost else []
        parts += [f"the old version has no {listed(more, 3)}"] if more else []
        raise wrong(
            f"{'; '.join(parts)}; expected the columns of both tables to be the same",
            "before",
        )


def _said(found: Comparison) -> dict[str, Any]:
    """What the manifest has of a comparison."""

    def named(flags: Mask) -> list[str]:
        pairs = zip(found.features, flags.tolist(), strict=True)
        return [name for name, is_flagged in pairs if is_flagged]

    return {
        "level": None if found.level is None else found.level.in_words,
        "limit": None if found.level is None else found.level.limit,
        "beyond": named(found.distance_flagged),
        "size_flagged": named(found.size_flagged),
        "total_flagged": found.total_flagged,
        "base_flagged": found.base_flagged,
        "sources": list(found.sources),
        "in_words": [x.sentence for x in found.document().findings],
        "parameters": dict(found.parameters),
    }


def _writers(found: Comparison, name: str) -> dict[str, Writer]:
    """What writes it as archive, table and picture."""

    def draw(path: str) -> None:
        from matplotlib.figure import Figure

        from propopt.plots import plot_changes

        rows = min(len(found.features), 15)
        figure = Figure(figsize=(6.4, 1.6 + 0.3 * rows), layout="constrained")
        plot_changes(found, ax=figure.subplots())
        write_svg(figure, path, salt=printable(name))

    return {
        "_comparison.npz": found.save,
        "_comparison.csv": found.to_csv,
        "_comparison.svg": draw,
    }


# ---- Two files of the command line: problems, or explanations that were saved


def comparison_problem(old: ProblemFile, new: ProblemFile) -> ProblemFile:
    """The new problem with a comparison with the old one as its job."""
    others = dict.fromkeys(("explain", "lime", "interactions", "audit"))
    section: Any = CompareSection
    own = section(before=str(old.source.path.resolve()))
    schema = new.schema.model_copy(update={**others, "compare": own})
    for error in own.mistakes(schema):
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
    """Compare two saved explanations by their targets, and write what is found.

    Raises
    ------
    ProblemFileError
        If a file is none, or they are of other rows; the message names it.
    """
    suffixes = CompareSection.suffixes
    run = JobRun("compare", new.stem, suffixes, (old, new), folder, quiet=quiet)
    run.verbose = verbose

    def solve() -> Comparison:
        found = []
        for path in (old, new):
            try:
                found.append(Explanation.load(path))
            except FileNotFoundError:
                raise ProblemFileError(f"there is no file {path}") from None
        return compare(*found)

    def outputs(found: Comparison) -> Iterator[JobOutput]:
        told = {"before": str(old), "after": str(new), **_said(found)}
        page: dict[str, Writer] = {".html": found.to_html} if report else {}
        yield JobOutput(
            {**_writers(found, new.stem), **page}, told, [], [found.document()]
        )

    found: Comparison = run.do(solve, outputs)
    return found

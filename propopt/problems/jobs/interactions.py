"""``propopt interactions``: interactions of features for a learner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import comb
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field

from propopt.base.document import Document
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.files import write_csv
from propopt.interactions import (
    ILOCO,
    DataSplit,
    InteractionScores,
    Minipatches,
)
from propopt.interactions.features import (
    Features,
    encoded_groups,
)
from propopt.interactions.iloco import Scheme
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.refits import Refits
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    Writer,
    figure_file,
    parts_folder,
)
from propopt.problems.sections import (
    Count,
    OneOf,
    Section,
    Shaped,
    part,
    section_of,
    wrong,
)
from propopt.problems.subject.data import (
    CommonKeys,
    ProblemFile,
    settings_in_words,
)
from propopt.problems.subject.subject import Subject


# ---- Sections of schemes and sets


BelowOne: TypeAlias = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
RowsSetting: TypeAlias = Annotated[
    Count | BelowOne | Literal["sqrt"],
    Shaped("a number of rows, a share such as 0.2, or sqrt"),
]
FeaturesSetting: TypeAlias = Annotated[
    Count | BelowOne, Shaped("a number of features, or a share such as 0.5")
]


MinipatchesSection: Final = section_of(
    Minipatches,
    Section,
    "MinipatchesSection",
    "An ensemble on random rows and features, by :class:`Minipatches`.",
    without=("keep", "folder"),
    kind=Literal["minipatches"],
    n_patches=(
        Annotated[int, Field(ge=2, le=10_000_000)] | None,
        "number of fits. By default as many as until needs, and at most 10,000",
    ),
    until=BelowOne | None,
    rows=RowsSetting,
    n_features=FeaturesSetting | None,
)
SplitSection: Final = section_of(
    DataSplit,
    Section,
    "SplitSection",
    "One fit for each set of features, by :class:`DataSplit`.",
    without=("groups",),
    kind=Literal["split"],
    cv=(
        Annotated[
            Annotated[int, Field(ge=2, le=10_000)] | BelowOne,
            Shaped("a share of test rows such as 0.5, or a number of folds"),
        ],
        "The share of test rows, or a number of folds, each of which serves once as "
        "the test rows",
    ),
)


AnyScheme: TypeAlias = Annotated[
    Section, OneOf("kind", (MinipatchesSection, SplitSection))
]
"""The schemes that a file may name."""

SetOfNames: TypeAlias = Annotated[list[str], Field(min_length=1)]
SetsToScore: TypeAlias = Annotated[
    Literal["all"] | Annotated[list[SetOfNames], Field(min_length=1)],
    Shaped("all, or a list of sets of names"),
]
_MOST_SETS: Final = 1_000_000


# ---- The section of the job


@partial(
    section_of,
    ILOCO,
    also=InteractionScores.intervals,
    without=("self", "estimator", "n_jobs", "random_state", "progress", "errors"),
    order=Annotated[int, Field(ge=1, le=8)],
    error=Literal["auto", "squared", "absolute", "probability", "hinge"],
    level=Annotated[float, Field(gt=0, lt=1)],
)
class InteractionsSection(JobSection):
    """Interaction scores of sets of features, by :class:`ILOCO` on all rows.

    ============================ ======================================================
    ``<name>_interactions.csv``  a row for each set: score, errors, interval, p-values
    ``<name>_main_effects.csv``  the same for single features, which is LOCO
    ``<name>.svg``               single features and the strongest sets, with intervals
                                 with their intervals
    ``<name>.html``              with ``--report`` a page of the result
    ``<name>.npz``               the scores, by their ``save``
    ``<name>.json``              the settings, and errors of the predictions
    ============================ ======================================================
    """

    key = command = "interactions"
    suffixes: ClassVar[tuple[str, ...]] = (
        "_interactions.csv",
        "_main_effects.csv",
        ".svg",
        ".html",
        ".npz",
        ".json",
    )
    refits = True

    scheme: AnyScheme = Field(
        MinipatchesSection.model_validate({"kind": "minipatches"}),
        description="how predictors without features are fitted",
    )
    sets: SetsToScore = Field("all", description="all, or lists of names")
    groups: dict[str, SetOfNames] = Field(
        {},
        description="columns that are left out together, by the name of their feature; "
        "in addition to data.groups",
    )

    def conflicts(self) -> Iterator[PropoptError]:
        if isinstance(self.sets, list):
            yield from self.without_effect("a list of sets", "order")

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        if schema.model is not None:
            chosen = {"output", "target_class"} & schema.model.model_fields_set
            for name in sorted(chosen):
                message = "has no effect: errors are of predictions for all classes"
                yield wrong(message, "model", name)
        if schema.data.explain is not None:
            message = "has no effect: each row is predicted by models fitted without it"
            yield wrong(message, "data", "explain")

    def solve(self, file: ProblemFile, progress: bool | None = None) -> ILOCO:
        """The fitted estimator, with scores of sets and of single features."""
        learner = file.subject.learner
        X, y = all_rows(file.subject)
        schema = file.subject.columns
        groups: dict[Any, Any] = {**self.groups}
        if schema is not None:
            groups |= encoded_groups(schema)
        scheme = self._scheme(file)
        settings = self.settings()
        n_sets = comb(len(Features.of(X.columns, groups)), settings["order"])
        if self.sets == "all" and n_sets > _MOST_SETS:
            raise InvalidInput(
                f"sets: all {n_sets:,} sets are more than {_MOST_SETS:,}; list some"
            )
        return ILOCO(
            learner,
            scheme,
            order=settings["order"],
            sets=self.sets,
            error=settings["error"],
            groups=groups,
            n_jobs=file.n_jobs,
            random_state=file.schema.seed,
            progress=progress,
        ).fit(X, y)

    def _scheme(self, file: ProblemFile) -> Scheme:
        """The scheme, which continues from the folder of ``--resume``."""
        with part(self.key, "scheme"):
            scheme: Scheme = self.scheme.make(folder=parts_folder(file))
        return scheme

    def introduce(self, file: ProblemFile, run: JobRun) -> None:
        """Print sizes; there is no score, as no model is fitted to all rows."""
        _ = self._scheme(file)  # refuses an invalid scheme
        n_rows, n_columns = all_rows(file.subject)[0].shape
        size = f"{n_rows:,} rows × {n_columns} columns"
        run.say_labelled(data=size, model=file.model)
        run.say(*filter(None, file.notes))

    def outputs(self, model: ILOCO, run: JobRun) -> Iterator[JobOutput]:
        """Tables with the requested intervals, a figure, and the manifest."""
        file: ProblemFile = run.file
        result = model.result_
        main_effects = model.main_effects_
        patches = model.refit_errors_  # each is one fit
        stop = patches.stop if isinstance(patches, PatchErrors) else None
        interrupted = stop is not None and stop["why"] == "interrupted"
        X, y = all_rows(file.subject)
        settings = self.settings()
        refits = Refits.of(model.estimator, X, y, error=settings["error"])
        mean = patches.mean_error
        constant = refits.constant_error
        content = {  # no model is fitted to all rows
            "model": file.model,
            "seed": file.schema.seed,
            "settings": self.model_dump(exclude_none=True),
            "method": result.method,
            "error": result.error,
            "units": result.units,
            "n_rows": result.n_rows,
            "features": list(map(str, result.names)),
            "n_sets": len(result.sets),
            "n_candidates": result.n_candidates,
            "mean_error": mean,
            "mean_error_of_a_constant": constant,
            "interrupted": interrupted,
            "patches": stop,
        }

        def table(scores: InteractionScores, path: str) -> None:
            frame = scores.to_frame(
                level=settings["level"],
                adjust=settings["adjust"],
                side=settings["side"],
            )
            write_csv(path, frame, names_of_rows=False)

        writers: dict[str, Writer] = {
            "_interactions.csv": partial(table, result),
            "_main_effects.csv": partial(table, main_effects),
            ".svg": partial(
                write_interactions_figure, result, main_effects, settings, file.name
            ),
            ".npz": result.save,
        }
        verdict = "" if mean < constant else ", no better than a constant"
        lines = (
            f"without features: {settings_in_words(self.scheme)}",
            f"mean {result.error} error: {mean:.4g} (constant {constant:.4g}){verdict}",
        )
        shown = [result.document()]
        if result.order > 1:
            shown.append(main_effects.document())
        yield JobOutput(writers, content, lines, shown, interrupted=interrupted)

    def documents(self, model: ILOCO, file: ProblemFile) -> Sequence[Document]:
        del file
        return [model.result_.document()]


def all_rows(subject: Subject) -> tuple[Any, Any]:
    """Table (N, D) and target (N,) of a subject, which is not divided."""
    if subject.target is None:
        raise InvalidInput("there is no target; give y too")
    return subject.points, subject.target


# ---- The figure of interactions


_DRAWN: Final = 20
"""Largest number of sets in a panel."""
_WIDTH: Final = 11.0
"""Inches, which are 1,056 pixels of a screen."""
_LETTERS: Final[Any] = {"font.size": 10.5}


def write_interactions_figure(
    result: InteractionScores,
    main_effects: InteractionScores,
    settings: Mapping[str, Any],
    name: str,
    path: str,
) -> None:
    """Draw single features and the strongest sets, with their intervals."""
    from matplotlib import rc_context

    some = [main_effects, result] if result.order > 1 else [result]
    heights = [max(3.4, 1.2 + 0.26 * min(len(one), _DRAWN)) for one in some]
    size = (_WIDTH, 1.2 + sum(heights))
    with rc_context(_LETTERS), figure_file(path, name, size) as figure:
        panels = figure.subplots(len(heights), height_ratios=heights, squeeze=False)
        for scores, axes in zip(some, panels[:, 0], strict=True):
            scores.plot(
                _DRAWN, level=settings["level"], adjust=settings["adjust"], ax=axes
            )

"""``propopt interactions``: how much features matter jointly to a learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import comb
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from pydantic import Field
from sklearn.base import is_classifier

from propopt.base.document import Document
from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.files import write_csv
from propopt.base.text import matplotlib_text
from propopt.interactions import (
    ILOCO,
    DataSplit,
    InteractionScores,
    Minipatches,
    Screen,
)
from propopt.interactions.features import (
    WHOLE,
    Features,
    encoded_groups,
    read_order,
    read_sets,
)
from propopt.interactions.iloco import Scheme
from propopt.interactions.minipatches import PatchErrors
from propopt.interactions.patch_draws import check_order
from propopt.interactions.scores import SET_NOUNS, intervals_in_words
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    Writer,
    parts_folder,
    write_figure,
)
from propopt.problems.sections import (
    Count,
    Missing,
    OneOf,
    Section,
    Shaped,
    part,
    section_of,
    wrong,
)
from propopt.problems.subject.data import (
    CommonKeys,
    DataShape,
    ProblemFile,
    settings_in_words,
)
from propopt.problems.subject.models import OnnxModel
from propopt.problems.subject.subject import Subject, joined_rows


# ---- Sections on how predictors without features are had, and on which sets


BelowOne: TypeAlias = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
RowsSetting: TypeAlias = Annotated[
    Count | BelowOne | Literal["sqrt"],
    Shaped("how many rows, a share of them such as 0.2, or sqrt"),
]
FeaturesSetting: TypeAlias = Annotated[
    Count | BelowOne, Shaped("how many features, or a share of them such as 0.5")
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
        "how many; each is one fit of the model. By default as many as until needs, "
        "and at most 10,000",
    ),
    until=BelowOne | None,
    rows=RowsSetting,
    n_features=FeaturesSetting | None,
    n_groups=Annotated[int, Field(ge=2, le=1000)] | None,
)
SplitSection: Final = section_of(
    DataSplit,
    Section,
    "SplitSection",
    "One fit for each set of features, by :class:`DataSplit`.",
    without=("folds", "groups"),
    kind=Literal["split"],
    test_size=BelowOne,
    n_folds=Annotated[int, Field(ge=2, le=10_000)] | None,
)


@partial(section_of, Screen, without=("scheme",))
class ScreenSection(Section):
    """The sets of largest scores, by :class:`propopt.interactions.Screen`."""


AnyScheme: TypeAlias = Annotated[
    Section, OneOf("kind", (MinipatchesSection, SplitSection))
]
"""The schemes that a file may name."""

SetOfNames: TypeAlias = Annotated[list[str], Field(min_length=1)]
SetsToScore: TypeAlias = Annotated[
    Literal["all"] | Annotated[list[SetOfNames], Field(min_length=1)] | ScreenSection,
    Shaped(
        "all, a list of sets of names, or {n_sets: }, the number of those that are "
        "chosen"
    ),
]
_MOST_SETS: Final = 1_000_000


# ---- The job of ``interactions``: which sets of features, how, and how sure


@partial(
    section_of,
    ILOCO,
    also=InteractionScores.intervals,
    without=("self", "estimator", "n_jobs", "random_state", "progress", "errors"),
    order=Annotated[int, Field(ge=1, le=8)],
    error=Literal["auto", "squared", "absolute", "probability"],
    level=Annotated[float, Field(gt=0, lt=1)],
    against="what is rejected: a score of zero, or what main effects alone would show "
    "where all patches have one number of features",
)
class InteractionsSection(JobSection):
    """Scores of sets of features, all rows judged, by :class:`ILOCO`.

    ============================ ======================================================
    ``<name>_interactions.csv``  a line for each set: score, errors, interval, p-values
    ``<name>_main_effects.csv``  the same of each feature by itself, which is LOCO
    ``<name>.svg``               pairs as cells, the strongest sets, and features by
                                 themselves, with their intervals
    ``<name>.html``              with ``--report`` a page of what was found
    ``<name>.npz``               the scores, by their ``save``
    ``<name>.json``              what was fitted and how, and how well it predicts
    ============================ ======================================================
    """

    key = command = "interactions"
    suffixes: ClassVar[tuple[str, ...]] = (
        *("_interactions.csv", "_main_effects.csv", ".svg"),
        *(".html", ".npz", ".json"),
    )
    refits = True

    scheme: AnyScheme = Field(
        MinipatchesSection.model_validate({"kind": "minipatches"}),
        description="how predictors without features are had",
    )
    sets: SetsToScore = Field(
        "all", description="which: all, lists of names, or the n_sets of largest score"
    )
    groups: dict[str, SetOfNames] = Field(
        {},
        description="columns that are left out together, by the name of the feature "
        "that they are; those of data.groups are",
    )

    def conflicts(self) -> Iterator[PropoptError]:
        if isinstance(self.sets, list):
            yield from self.without_effect("a list of sets", "order")

    @property
    def inference(self) -> dict[str, Any]:
        """Keyword arguments of :meth:`InteractionScores.to_frame`."""
        own = self.settings()
        return {name: own[name] for name in ("level", "adjust", "side", "against")}

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        """What cannot be fitted again and again, and settings without effect."""
        model, data = schema.model, schema.data
        if model is None:
            message = "a formula cannot be fitted without a feature; interactions need "
            yield wrong(f"{message}a model", "function")
            return
        if isinstance(model, OnnxModel):
            yield wrong(f"{model.words} cannot be fitted again", "model")
        for name in sorted(_NOT_OF_REFITS.keys() & model.model_fields_set):
            yield wrong(_NOT_OF_REFITS[name], "model", name)
        if data.text is not None:
            message = "words of documents cannot be left out by refits; leave it out"
            yield wrong(message, "data", "text")
        if data.explain is not None:
            message = "has no effect: each row is judged by models that did not see it"
            yield wrong(message, "data", "explain")
        if data.csv is not None and data.target is None:
            message = "required, and missing: the column that models learn"
            yield wrong(message, "data", Missing("target"))
        if not data.is_table:
            yield wrong("expected sklearn or csv, which models learn", "data")

    def check(self, data_shape: DataShape) -> None:
        """Refuse sets and patches that a table cannot have."""
        groups: dict[Any, Any] = {**data_shape.data.groups, **self.groups}
        features = Features.of(data_shape.columns, groups)
        order = self.settings()["order"]
        if isinstance(self.sets, list):
            order = read_sets(self.sets, order, features).shape[1]
        order = read_order(order, len(features))
        n_sets = comb(len(features), order)
        if self.sets == "all" and n_sets > _MOST_SETS:
            raise InvalidInput(
                f"sets: all are {n_sets:,}, more than {_MOST_SETS:,}; list some, "
                "or take {n_sets: 100}"
            )
        with part("scheme"):
            scheme = self.scheme.make()
            if isinstance(scheme, Minipatches):
                check_order(scheme.usable(data_shape.n_rows, features), order)

    def solve(self, file: ProblemFile, progress: bool | None = None) -> ILOCO:
        """The fitted estimator, with scores of the sets and of each feature."""
        with part("model"):
            learner = file.subject.learner
        X, y = all_rows(file.subject)
        schema = file.subject.columns
        groups: dict[Any, Any] = {}
        if schema is not None:
            groups |= encoded_groups(schema)
        scheme, own, sets = self._scheme(file), self.settings(), self.sets
        if isinstance(sets, Section):
            sets = sets.make()
        with part(self.key):
            return ILOCO(
                learner,
                scheme,
                order=own["order"],
                sets=sets,
                error=own["error"],
                groups=groups | self.groups,
                n_jobs=file.n_jobs,
                random_state=file.schema.seed,
                progress=progress,
            ).fit(X, y)

    def _scheme(self, file: ProblemFile) -> Scheme:
        """The scheme, which goes on from the folder of the file where one is given."""
        with part(self.key, "scheme"):
            scheme: Scheme = self.scheme.make(folder=parts_folder(file))
        return scheme

    def introduce(self, file: ProblemFile, run: JobRun) -> None:
        """Sizes alone: no model is fitted to all rows, so that none has a score."""
        _ = self._scheme(file)  # what cannot go on is refused
        n_rows, n_columns = all_rows(file.subject)[0].shape
        run.say(f"{n_rows:,} rows × {n_columns} columns", f"model: {file.model}")
        run.say(*filter(None, file.told))

    def outputs(self, found: ILOCO, run: JobRun) -> Iterator[JobOutput]:
        """Tables with the intervals that the section asks for, and what was done."""
        file: ProblemFile = run.file
        result, main_effects = found.result_, found.main_effects_
        patches = found.refit_errors_  # each is one fit
        stop = patches.stop if isinstance(patches, PatchErrors) else None
        interrupted = stop is not None and stop.why == "interrupted"
        mean, constant, error = _judged(found, np.asarray(all_rows(file.subject)[1]))
        told = {  # no model is fitted to all rows
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
            "patches": None if stop is None else stop.record,
            "notes": [*result.notes, *result.cautions],
        }

        def table(scores: InteractionScores, path: str) -> None:
            write_csv(path, scores.to_frame(**self.inference), names_of_rows=False)

        drawn_as = (result, main_effects, self, file.name)
        writers: dict[str, Writer] = {
            "_interactions.csv": partial(table, result),
            "_main_effects.csv": partial(table, main_effects),
            ".svg": partial(write_interactions_figure, *drawn_as),
            ".npz": result.save,
        }
        verdict = "" if mean < constant else ", no better than a constant"
        lines = (
            f"features are left out by {settings_in_words(self.scheme)}",
            f"mean {error} error at rows not seen: {mean:.4g} with all features, "
            f"{constant:.4g} of a constant{verdict}",
        )
        shown = [result.document()]
        if result.order > 1:
            shown.append(main_effects.document())
        yield JobOutput(writers, told, lines, shown, interrupted=interrupted)

    def documents(self, found: ILOCO, file: ProblemFile) -> Sequence[Document]:
        del file
        return [found.result_.document()]


_REFITTED: Final = "has no effect: predictions are judged, of all classes"
_NOT_OF_REFITS: Final = {
    "output": _REFITTED,
    "target_class": _REFITTED,
}


def all_rows(subject: Subject) -> tuple[Any, Any]:
    """Table (N, D) and target (N,) of a subject: what it explains, then its others."""
    points, target = subject.points, subject.target
    if target is None:
        raise InvalidInput("there is no target to be fitted to; give y too")
    if subject.others is points:
        return points, target
    return subject.all_points, joined_rows(target, subject.others_target)


def _judged(fitted: ILOCO, y: Any) -> tuple[float, float, str]:
    """Mean errors at rows not seen, with all features and of a constant; their name."""
    source, error = fitted.refit_errors_, fitted.error_
    mean = float(source.row_weights @ source.errors(WHOLE).rows[:, 0] / len(y))
    outputs, target = np.full(len(y), 0.0), y
    if is_classifier(fitted.estimator):
        target = np.unique(y, return_inverse=True)[1]
        outputs = np.tile(np.bincount(target) / len(y), (len(y), 1))
    else:
        outputs += y.mean()
    known = error.known(outputs, target)
    return mean, float(error.of(target, known[:, None, :]).mean()), error.name


# ---- The picture of interactions: pairs as cells, features and sets with intervals


_DRAWN: Final = 20
"""Sets with their intervals, and features of cells."""
_WIDTH: Final = 11.0
"""Inches: 1,056 pixels of a screen, on which letters are as large as in its text."""
_LETTERS: Final[Any] = {"font.size": 10.5}


def write_interactions_figure(
    result: InteractionScores,
    main_effects: InteractionScores,
    section: InteractionsSection,
    name: str,
    path: str,
) -> None:
    """Draw pairs as cells, features by themselves, and the strongest sets."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from propopt.plots import interaction_heatmap, interaction_intervals
    from propopt.plots.interactions import capitalised

    own = section.settings()
    how: dict[str, Any] = {name: own[name] for name in ("level", "adjust")}
    some = [main_effects, result] if result.order > 1 else [result]
    heights = [max(3.4, 1.2 + 0.26 * min(len(one), _DRAWN)) for one in some]
    if result.order == 2:
        heights.insert(0, 2.4 + 0.28 * min(len(result.names), _DRAWN))
    with rc_context(_LETTERS):
        figure = Figure((_WIDTH, 1.2 + sum(heights)), layout="constrained")
        panels = figure.subplots(len(heights), height_ratios=heights, squeeze=False)
        if result.order == 2:
            interaction_heatmap(result, ax=panels[0, 0], **how)
            panels[0, 0].set_title(
                _counted(len(result.names), "features, in pairs"), loc="left"
            )
        for scores, axes in zip(some, panels[-len(some) :, 0], strict=True):
            interaction_intervals(scores, ax=axes, n_sets=_DRAWN, **how)
            noun = SET_NOUNS.get(scores.order, "set") + "s"
            axes.set_title(_counted(len(scores), noun), loc="left")
        title = (
            capitalised(result.explained),
            f"{result.n_rows:,} rows; {intervals_in_words(result, **how)}",
        )
        figure.suptitle("\n".join(map(matplotlib_text, title)), x=0.01, ha="left")
        write_figure(figure, panels.ravel(), name, path)


def _counted(count: int, noun: str) -> str:
    """How many of how many are drawn."""
    if count <= _DRAWN:
        return f"All {noun}"
    return f"The {_DRAWN} strongest of {count:,} {noun}"

"""``propopt interactions``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, final

import numpy as np
import pandas as pd
from pydantic import Discriminator, Field, Tag, model_validator
from sklearn.base import is_classifier

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.base.files import write_csv, write_svg
from propopt.base.terminal import PlainConsole, print_table
from propopt.base.text import drawn, printable
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
    SetChoice,
    encoded_groups,
    read_order,
    read_sets,
)
from propopt.interactions.inference import Adjustment, Null, Side
from propopt.interactions.left_out import LeftOut, Scheme
from propopt.interactions.patch_draws import check_order
from propopt.interactions.scores import (
    SET_NOUNS,
    aim_of_intervals,
    intervals_in_words,
    level_in_words,
    units_of_scores,
)
from propopt.problems.jobs.job import (
    Answer,
    FileOfJob,
    SubjectLook,
    Writer,
    settings_in_words,
    write_json,
)
from propopt.problems.sections import (
    Count,
    OneOf,
    Section,
    part,
    refuse_settings,
    section_of,
    shaped,
)
from propopt.problems.sources import Source
from propopt.problems.subject.data import CommonKeys, Extent
from propopt.problems.subject.models import OnnxModel
from propopt.problems.subject.subject import Subject, joined_rows
from propopt.results.certain import plural


# ---- The job of ``interactions``: how much features matter jointly to a learner


@final
@dataclass(frozen=True)
class Judged:
    """Mean errors at rows that a predictor did not see."""

    mean: float  # of the predictor that has all features
    constant: float  # of the mean of the target, or of how often classes come
    name: str

    @classmethod
    def of(cls, fitted: ILOCO, y: Any) -> Self:
        """Those of a fitted estimator, and of a constant for the same target."""
        source, error = fitted.left_out_, fitted.error_
        rows = source.errors(WHOLE).rows[:, 0]
        mean = float(source.row_weights @ rows / len(rows))
        answers, target = _constant(fitted, np.asarray(y))
        known = error.known(answers, target)
        constant = float(error.of(target, known[:, None, :]).mean())
        return cls(mean, constant, error.name)

    def in_words(self) -> str:
        """On one line."""
        verdict = "" if self.mean < self.constant else ", no better than a constant"
        return (
            f"mean {self.name} error with all features: {self.mean:.4g}, at rows not "
            f"seen; of a constant {self.constant:.4g}{verdict}"
        )


def _constant(fitted: ILOCO, y: Any) -> tuple[Array, Any]:
    """The same answer for each row, and the target as errors take it."""
    if not is_classifier(fitted.estimator):
        return np.full(len(y), y.mean()), y
    _, indices = np.unique(y, return_inverse=True)
    shares = np.bincount(indices) / len(indices)
    return np.tile(shares, (len(indices), 1)), indices


# ---- Sections on how predictors without features are had


def _kind_of_size(value: Any) -> str | None:
    match value:
        case bool():
            return None
        case int():
            return "count"
        case float():
            return "share"
        case "sqrt":
            return "sqrt"
    return None


BelowOne: TypeAlias = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
RowsSetting: TypeAlias = Annotated[
    Annotated[Count, Tag("count")]
    | Annotated[BelowOne, Tag("share")]
    | Annotated[Literal["sqrt"], Tag("sqrt")],
    Discriminator(
        _kind_of_size,
        custom_error_type="patch_rows_type",
        custom_error_message="expected how many rows, a share of them such as 0.2, or "
        "sqrt",
    ),
]
FeaturesSetting: TypeAlias = Annotated[
    Annotated[Count, Tag("count")] | Annotated[BelowOne, Tag("share")],
    Discriminator(
        _kind_of_size,
        custom_error_type="patch_features_type",
        custom_error_message="expected how many features, or a share of them such as "
        "0.5",
    ),
]


class SchemeSection(Section):
    """How predictors without features are had."""

    def build(self) -> Any:
        """The scheme of these settings."""
        return self.makes(**self.settings("kind"))

    def resumed(self, folder: Path) -> Scheme:
        """The same, which goes on from what is finished in a folder."""
        del folder
        raise InvalidInput(
            "--resume: only minipatches are kept in files; leave it out, or "
            "take {kind: minipatches}"
        )

    def is_whole(self, source: LeftOut) -> bool:
        """Whether all that these settings ask for was fitted."""
        del source
        return True

    def check(self, n_rows: int, features: Features, order: int) -> None:
        """Refuse what does not fit a table, before anything is fitted."""
        del n_rows, features, order
        self.build()


@partial(
    section_of,
    Minipatches,
    kind=Literal["minipatches"],
    n_patches=(
        Annotated[int, Field(ge=2, le=10_000_000)],
        "how many; each is one fit of the model",
    ),
    rows=(
        RowsSetting,
        "of a patch: how many, a share, or sqrt, at which intervals are proved",
    ),
    n_features=(
        FeaturesSetting | None,
        "of a patch: how many, or a share; by default half of up to 20, and a fifth of "
        "more",
    ),
    columns="each feature by itself with that chance, so that pairs that do not "
    "interact score zero in the mean; or exactly so many, as in the paper",
    row_sampling="from all rows, or from each class by its share",
    n_groups=(
        Annotated[int, Field(ge=2, le=1000)] | None,
        "of patches, by which the error of few patches is told; by default 20, or as "
        "many as there are patches",
    ),
)
class MinipatchesSection(SchemeSection):
    """An ensemble on random rows and features, by :class:`Minipatches`."""

    def resumed(self, folder: Path) -> Minipatches:
        return replace(self.build(), folder=folder)

    def is_whole(self, source: LeftOut) -> bool:
        return source.n_patches == self.build().n_patches

    def check(self, n_rows: int, features: Features, order: int) -> None:
        check_order(self.build().usable(n_rows, features), order)


SplitSection: Final = section_of(
    DataSplit,
    SchemeSection,
    "SplitSection",
    "One fit for each set of features, by :class:`DataSplit`.",
    kind=Literal["split"],
    test_size=(BelowOne, "the share of rows that are held out"),
    n_folds=(
        Annotated[int, Field(ge=2, le=10_000)] | None,
        "so many folds instead, of which each is held out in turn",
    ),
    stratify="draw from each class alike",
)
AnyScheme: TypeAlias = Annotated[
    SchemeSection, OneOf("kind", (MinipatchesSection, SplitSection))
]
"""The schemes that a file may name."""

MINIPATCHES: Final = MinipatchesSection.model_validate({"kind": "minipatches"})
"""With all defaults, where a file names none."""


# ---- The job of ``interactions``: which sets of features, how, and how sure


class ScreenSection(Section):
    """The sets of largest scores, by :class:`propopt.interactions.Screen`."""

    n_sets: Count = Field(100, description="how many are scored, of either sign")

    def build(self) -> Screen:
        """The screen of these settings."""
        return Screen(n_sets=self.n_sets)


_MOST_SETS: Final = 1_000_000

SetOfNames: TypeAlias = Annotated[list[str], Field(min_length=1)]
SetsToScore: TypeAlias = Annotated[
    Annotated[Literal["all"], Tag("all")]
    | Annotated[list[SetOfNames], Field(min_length=1), Tag("list")]
    | Annotated[ScreenSection, Tag("screen")],
    shaped(
        "sets_type",
        "expected all, a list of sets of names, or {n_sets: }, the number of those "
        "that are chosen",
        all="all",
        list=list,
        screen=(dict, ScreenSection),
    ),
]


class InteractionsSection(Section):
    """Scores of sets of features, by :class:`propopt.interactions.ILOCO`."""

    scheme: AnyScheme = Field(
        MINIPATCHES, description="how predictors without features are had"
    )
    order: Annotated[int, Field(ge=1, le=8)] = Field(
        2, description="how many features a set has: 1 is LOCO, 2 are pairs"
    )
    sets: SetsToScore = Field(
        "all", description="which: all, lists of names, or the n_sets of largest score"
    )
    groups: dict[str, SetOfNames] = Field(
        {},
        description="columns that are left out together, by the name of the feature "
        "that they are; those of data.groups are",
    )
    error: Literal["auto", "squared", "absolute", "probability"] = Field(
        "auto",
        description="of a prediction: of regressions squared by default, of classes 1 "
        "less the probability of the right one",
    )
    level: Annotated[float, Field(gt=0, lt=1)] = Field(0.9, description="of intervals")
    adjust: Adjustment = Field(
        "bonferroni", description="intervals and p-values for how many sets there are"
    )
    side: Side = Field(
        "both", description="which ends intervals have; lower tells what is above zero"
    )
    against: Null = Field(
        "zero",
        description="what is rejected: a score of zero, or what main effects alone "
        "would show where all patches have one number of features",
    )

    @model_validator(mode="after")
    def _sets_say_their_size(self) -> Self:
        if isinstance(self.sets, list):
            refuse_settings(self, "a list of sets", ("order",))
        return self

    @property
    def chosen(self) -> SetChoice | Screen:
        """Which sets, as :class:`propopt.interactions.ILOCO` takes them."""
        return self.sets.build() if isinstance(self.sets, ScreenSection) else self.sets

    def check(
        self, columns: Sequence[str], n_rows: int, others: Mapping[str, Sequence[str]]
    ) -> None:
        """Refuse sets and patches that a table cannot have."""
        features = Features.of(columns, self.all_groups(others))
        if isinstance(self.sets, list):
            order = read_sets(self.sets, self.order, features).shape[1]
        else:
            order = read_order(self.order, len(features))
        if self.sets == "all" and comb(len(features), order) > _MOST_SETS:
            raise InvalidInput(
                f"sets: all are {comb(len(features), order):,}, more than "
                f"{_MOST_SETS:,}; list some, or take {{n_sets: 100}}"
            )
        with part("scheme"):
            self.scheme.check(n_rows, features, order)

    @property
    def inference(self) -> dict[str, Any]:
        """Keyword arguments of :meth:`InteractionScores.to_frame`."""
        names = ("level", "adjust", "side", "against")
        return {name: getattr(self, name) for name in names}

    def all_groups(
        self, others: Mapping[Any, Sequence[Any]]
    ) -> dict[Hashable, Sequence[Hashable]]:
        """Groups of the data, and those of this section."""
        return {**others, **self.groups}


_REFITTED: Final = "has no effect: predictions are judged, of all classes"
_NOT_OF_REFITS: Final = {
    "output": _REFITTED,
    "target_class": _REFITTED,
    "smooth": "has no effect: no slopes are taken",
}


def _check_learner(schema: CommonKeys, source: Source) -> None:
    """Refuse what cannot be fitted again and again, and settings that are not used."""
    model = schema.model
    if model is None:
        message = "a formula cannot be fitted without a feature; interactions need a"
        raise source.error(("function",), f"{message} model")
    if isinstance(model, OnnxModel):
        raise source.error(("model",), f"{model.words} cannot be fitted again")
    for name, message in _NOT_OF_REFITS.items():
        if name in model.model_fields_set:
            raise source.error(("model", name), message)


def _check_data(schema: CommonKeys, source: Source) -> None:
    data = schema.data
    if data.text is not None:
        message = "words of documents cannot be left out by refits; leave it out"
        raise source.error(("data", "text"), message)
    if data.explain is not None:
        message = "has no effect: each row is judged by models that did not see it"
        raise source.error(("data", "explain"), message)
    if data.csv is not None and data.target is None:
        message = "required, and missing: the column that models learn"
        raise source.error(("data",), message, missing="target")
    if not data.is_table:
        raise source.error(("data",), "expected sklearn or csv, which models learn")


# ---- The picture of interactions: pairs as cells, sets and features with intervals


_DRAWN: Final = 20
"""Sets with their intervals, and features of cells."""
_WIDTH: Final = 11.0
"""Inches: 1,056 pixels of a screen, on which letters are as large as in its text."""
_FEW: Final = 12
_LONG: Final = 14
"""Cells, and letters of a name, that have room in half of that width."""
_LETTERS: Final[Any] = {"font.size": 10.5}


def write_interactions_figure(
    result: InteractionScores,
    main_effects: InteractionScores,
    section: InteractionsSection,
    name: str,
    path: str,
) -> None:
    """Draw pairs as cells, the strongest sets, and features by themselves."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from propopt.plots import interaction_heatmap, interaction_intervals
    from propopt.plots.interactions import capitalised

    how: dict[str, Any] = {"level": section.level, "adjust": section.adjust}
    intervals: Any = partial(interaction_intervals, n_sets=_DRAWN, **how)
    with rc_context(_LETTERS):
        figure = Figure(layout="constrained")
        positions, heights = _places(result, len(main_effects))
        panels = figure.subplot_mosaic(positions, height_ratios=heights)
        figure.set_size_inches(_WIDTH, 1.2 + sum(heights))
        if result.order == 2:
            interaction_heatmap(result, ax=panels["cells"], **how)
            panels["cells"].set_title(_counted(result, "features"), loc="left")
        if result.order > 1:
            intervals(main_effects, ax=panels["features"])
            panels["features"].set_title(_counted(main_effects), loc="left")
        intervals(result, ax=panels["sets"])
        panels["sets"].set_title(_counted(result), loc="left")
        intervals_are = intervals_in_words(result, section.level, section.adjust)
        title = (
            capitalised(result.explained),
            f"{result.n_rows:,} rows; {intervals_are}",
        )
        figure.suptitle("\n".join(map(drawn, title)), x=0.01, ha="left")
        _one_legend(figure, list(panels.values()))
        write_svg(figure, path, salt=printable(name))


def _places(result: InteractionScores, n_features: int) -> tuple[Any, list[float]]:
    """Where panels are, and how high their rows: room for each line and each cell."""
    sets, features = (1.2 + 0.26 * min(n, _DRAWN) for n in (len(result), n_features))
    if result.order == 1:
        return [["sets"]], [max(3.4, sets)]
    if result.order > 2:
        return [["features", "sets"]], [max(3.4, sets, features)]
    n_cells = min(len(result.names), _DRAWN)
    longest = min(max(len(str(name)) for name in result.names), _LONG)
    cells = 1.2 + 0.28 * n_cells + 0.08 * longest
    if (n_cells > _FEW and longest > 4) or longest == _LONG:
        lower = max(3.4, sets, features)
        return [["cells", "cells"], ["features", "sets"]], [cells, lower]
    grown = max(1.0, sets / (cells + features))
    return [["cells", "sets"], ["features", "sets"]], [grown * cells, grown * features]


def _counted(result: InteractionScores, noun: str = "") -> str:
    """How many of how many are drawn."""
    kind = SET_NOUNS.get(result.order, "set") + "s"
    number = len(result.names) if noun else len(result)
    if number <= _DRAWN:
        return f"All {kind}" if result.order > 1 else "Features by themselves"
    strongest = f"{_DRAWN} strongest of {number:,} {noun or kind}"
    return f"Pairs of the {strongest}" if noun else f"The {strongest}"


def _one_legend(figure: Any, panels: Sequence[Any]) -> None:
    """Below all panels, each look once, with what it means of sets and of features."""
    kinds: dict[str, tuple[Any, list[str]]] = {}
    for axes in panels:
        legend = axes.get_legend()
        if legend is None:
            continue
        for look, label in zip(*axes.get_legend_handles_labels(), strict=True):
            line = getattr(look, "lines", [None])[0]
            kind = "leak" if line is None else str(line.get_marker())
            words = kinds.setdefault(kind, (look, []))[1]
            if label not in words:
                words.append(label)
        legend.remove()
    looks = [look for look, _ in kinds.values()]
    labels = [" / ".join(words) for _, words in kinds.values()]
    figure.legend(looks, labels, loc="outside lower left", frameon=False, ncols=3)


# ---- What is asked about features together by a problem file


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class InteractionsLook(SubjectLook[InteractionsSection]):
    """Sets of features of a subject, all rows judged; ``run`` writes these files.

    ============================ ======================================================
    ``<name>_interactions.csv``  a line for each set: score, errors, interval, p-values
    ``<name>_main_effects.csv``  the same of each feature by itself, which is LOCO
    ``<name>.svg``               pairs as cells, the strongest sets, and features by
                                 themselves, with their intervals
    ``<name>.npz``               the scores, by their ``save``
    ``<name>.json``              what was fitted and how, and how well it predicts
    ============================ ======================================================
    """

    key = "interactions"
    command = "propopt interactions"
    suffixes = ("_interactions.csv", "_main_effects.csv", ".svg", ".npz", ".json")
    refits = True

    name: str = "interactions"  # what the files written are called
    n_jobs: int | None = None  # workers that fit
    # a folder in which fits are kept, so that a run that ended early goes on
    resume: Path | None = None

    @classmethod
    def of(
        cls,
        file: FileOfJob,  # with interactions
        n_jobs: int | None = None,  # workers that fit; numbers do not depend on them
        resume: str | Path | None = None,
    ) -> InteractionsLook:
        """The job of a problem file."""
        section: InteractionsSection = file.require(cls)
        own = None if resume is None else Path(resume) / file.name
        if own is not None:
            with file.source.blaming("interactions", "scheme"):
                section.scheme.resumed(own)
        return cls.asked(
            file,
            model=settings_in_words(file.schema.model, frozenset({"output"})),
            n_jobs=n_jobs,
            resume=own,
        )

    @classmethod
    def check(
        cls, section: InteractionsSection, schema: CommonKeys, source: Source
    ) -> None:
        del section
        _check_learner(schema, source)
        _check_data(schema, source)

    @classmethod
    def check_extent(
        cls, section: InteractionsSection, schema: CommonKeys, extent: Extent
    ) -> None:
        with part("interactions"):
            section.check(extent.columns, extent.n_rows, schema.data.groups)

    def solve(self, progress: bool | None = None) -> ILOCO:
        """The fitted estimator, with scores of the sets and of each feature."""
        section = self.section
        with part("model"):
            learner = self.subject.learner
        X, y = all_rows(self.subject)
        scheme, schema = section.scheme, self.subject.columns
        encoded = {} if schema is None else encoded_groups(schema)
        with part("interactions"):
            return ILOCO(
                learner,
                scheme.build() if self.resume is None else scheme.resumed(self.resume),
                order=section.order,
                sets=section.chosen,
                error=section.error,
                groups=section.all_groups(encoded),
                n_jobs=self.n_jobs,
                random_state=self.seed,
                progress=progress,
            ).fit(X, y)

    def answer(self, progress: bool | None) -> Answer:
        """Tables with the intervals that the section asks for, and what was done."""
        fitted, section = self.solve(progress), self.section
        result, main_effects = fitted.result_, fitted.main_effects_
        interrupted = not section.scheme.is_whole(fitted.left_out_)
        judged = Judged.of(fitted, all_rows(self.subject)[1])
        content = {  # no model is fitted to all rows
            "job": self.key,
            "name": self.name,
            "model": self.model,
            "seed": self.seed,
            "settings": section.model_dump(exclude_none=True),
            "method": result.method,
            "error": result.error,
            "units": result.units,
            "n_rows": result.n_rows,
            "features": list(map(str, result.names)),
            "n_sets": len(result.sets),
            "n_candidates": result.n_candidates,
            "mean_error": judged.mean,
            "mean_error_of_a_constant": judged.constant,
            "interrupted": interrupted,
            "notes": [*result.notes, *result.cautions],
        }

        def table(scores: InteractionScores, path: str) -> None:
            frame = scores.to_frame(**section.inference)
            write_csv(path, frame, names_of_rows=False)

        drawn_as = (result, main_effects, section, self.name)
        writers: dict[str, Writer] = {
            "_interactions.csv": partial(table, result),
            "_main_effects.csv": partial(table, main_effects),
            ".svg": partial(write_interactions_figure, *drawn_as),
            ".npz": result.save,
            ".json": partial(write_json, content),
        }
        show = partial(print_interactions, section, fitted, judged)
        return Answer(result, writers, show, interrupted)

    def introduce(self, console: PlainConsole) -> None:
        """Sizes alone: no model is fitted to all rows, so that none has a score."""
        n_rows, n_columns = all_rows(self.subject)[0].shape
        console.print(f"{n_rows:,} rows × {n_columns} columns")


def all_rows(subject: Subject) -> tuple[Any, Any]:
    """Table (N, D) and target (N,) of a subject: what it explains, then its others."""
    points, target = subject.points, subject.target
    if target is None:
        raise InvalidInput("there is no target to be fitted to; give y too")
    if subject.others is points:
        return points, target
    return subject.all_points, joined_rows(target, subject.others_target)


# ---- What interactions print: how they were had, and the strongest sets of features


_SHOWN: Final = 10
"""Sets of a table, the first; of features as many."""
_OTHERS: Final = 5
"""Of those at the other end."""


def print_interactions(
    section: InteractionsSection, fitted: ILOCO, judged: Judged, console: PlainConsole
) -> None:
    """How scores were had, and the strongest sets and features."""
    result = fitted.result_
    how = (
        f"models without features, by {settings_in_words(section.scheme)}",
        judged.in_words(),
        units_of_scores(result),
        f"intervals are {aim_of_intervals(result)}",
    )
    for line in (*how, *result.notes, *result.cautions):
        console.print(line)
    if result.order > 1:
        _print_sets(result, section, console)
    main_effects = fitted.main_effects_
    table = main_effects.to_frame(**section.inference)
    first = table.nlargest(_SHOWN, "estimate")
    intervals = _intervals(main_effects, section)
    title = f"The features that matter most, {intervals}"
    _print_scores(title, main_effects, first, section, console)
    rest = len(main_effects) - len(first)
    if rest > 0:
        console.print(f"{plural(rest, 'more feature')} in the files")


def _print_sets(
    result: InteractionScores, section: InteractionsSection, console: PlainConsole
) -> None:
    """Those of largest score, and those that stand in for each other."""
    noun = SET_NOUNS.get(result.order, "set") + "s"
    frame = result.to_frame(**section.inference)
    highest = frame.nlargest(_SHOWN, "estimate")
    title = f"The {noun} of largest score, {_intervals(result, section)}"
    _print_scores(title, result, highest, section, console)
    lowest = frame.drop(highest.index).nsmallest(_OTHERS, "estimate")
    leak = lowest["leak"].fillna(0.0)
    leaked = (leak != 0.0) & (lowest["ci_high"] >= np.minimum(leak, 0.0))
    below = lowest[lowest["reject"] & (lowest["estimate"] < 0.0) & ~leaked]
    if len(below):
        meaning = ": each stands in for the other" if noun == "pairs" else ""
        title = f"The {noun} of most negative score{meaning}"
        _print_scores(title, result, below, section, console)


def _intervals(result: InteractionScores, section: InteractionsSection) -> str:
    """What they are, as a phrase."""
    level = level_in_words(section.level)
    if section.adjust == "none":
        return f"with intervals of {level} each"
    whose = f"{section.adjust} for {plural(result.n_candidates, 'set')}"
    return f"with intervals of {level} ({whose})"


def _print_scores(
    title: str,
    result: InteractionScores,
    shown: pd.DataFrame,
    section: InteractionsSection,
    console: PlainConsole,
) -> None:
    """A table of some sets of a result."""
    columns = {
        "score": "estimate",
        "from": "ci_low",
        "to": "ci_high",
        "adjusted p": "p_adj",
    }
    if result.leak.any():
        columns["without interaction"] = "leak"
    names = [f"feature_{k + 1}" for k in range(result.order)]
    lines = []
    for row in shown.to_dict("records"):
        numbers = [_number(row[column]) for column in columns.values()]
        verdict = "yes" if row["reject"] else "–" if row["used"] else "not used"
        lines.append([" × ".join(str(row[n]) for n in names), *numbers, verdict])
    kind = "set" if result.order > 1 else "feature"
    head = [kind, *columns, f"not {section.against}"]
    print_table(console, title, head, lines)


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4g}"

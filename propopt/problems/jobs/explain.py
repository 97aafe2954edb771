"""``propopt explain``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, final

import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.base.errors import InvalidInput
from propopt.base.files import archive_path
from propopt.base.terminal import PlainConsole, print_table
from propopt.base.text import gap_in_words, printable
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.first_look import explain
from propopt.explaining.one_by_one import Explainer
from propopt.explaining.plan import ExplainSettings, explained_members
from propopt.explaining.targets import LawChoice
from propopt.functions import Function
from propopt.interactions import InteractionScores
from propopt.lime import TextLaw
from propopt.problems.jobs.job import (
    Answer,
    FileOfJob,
    SubjectLook,
    Writer,
    manifest,
    page_writers,
    settings_in_words,
    write_json,
)
from propopt.problems.losses import PointGraph
from propopt.problems.sections import (
    MOST_NUMBERS,
    Count,
    Nonnegative,
    Positive,
    Section,
    part,
    section_of,
)
from propopt.problems.sources import Source
from propopt.problems.subject.data import CommonKeys, Extent
from propopt.problems.subject.model_sections import SmoothGradients
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation


# ---- The job of ``explain``: one explanation with stated defaults, written with names


@partial(
    section_of,
    ExplainSettings,
    scale=(
        Literal["std", "none"] | dict[str, Positive],
        "attributions are changes per so much of each feature: its standard deviation, "
        "one, or a number for each",
    ),
    graph=(PointGraph | None, "who is similar; by default the eight nearest rows"),
    robustness=(
        Nonnegative | None,
        "its weight; by default that at the knee of the whole curve",
    ),
    same_pattern="leave out neighbours in which other columns are missing",
    law=(
        Literal[LawChoice, "lime"],
        "over what a model is averaged before its slopes are taken: observed values "
        "near each row, gaussian noise, or nothing; by default observed values where "
        "it jumps. Of documents none, for effects of words, which is the default, or "
        "lime, for what the lime package tends to",
    ),
    units="changes of the output per scale, or parts of the output that add up to f(x) "
    "less its mean in every row",
    contributions=(
        ContributionChoice,
        "what attributions in units of the output are close to",
    ),
    metric="how differences of features count in units of the output: alike, or over "
    "the mean square of the contributions of each",
    precision=(
        Positive | None,
        "where slopes are sampled, draw until the relative target error is no larger",
    ),
    max_evaluations=(Count | None, "the most rows that the model is given for draws"),
    interactions=(
        str | None,
        "path, from that of this file, of the .npz that propopt interactions writes, "
        "or their save: a sentence names what matters jointly",
    ),
)
class ExplainSection(Section):
    """One explanation, by the defaults of :func:`propopt.explain`."""

    reference: Annotated[int, Field(ge=2, le=MOST_NUMBERS)] | None = Field(
        None,
        description="explain each row by itself, given so many reference rows, drawn "
        "from those that the model is fitted on: the same whoever else is explained",
    )

    @model_validator(mode="after")
    def _without_what_is_not_used(self) -> Self:
        for setting, others, reason in self._conflicts():
            unused = [name for name in others if name in self.model_fields_set]
            if unused:
                names = {"setting": setting, "others": ", ".join(unused)}
                raise PydanticCustomError(
                    "unused_setting",
                    "{setting} and {others}: {reason}",
                    {**names, "reason": reason},
                )
        return self

    def _conflicts(self) -> Iterator[tuple[str, tuple[str, ...], str]]:
        """What is asked for, the settings that it does not take, and why."""
        own: Any = self
        if self.reference is not None:
            yield "reference", ("graph", "same_pattern"), _BY_THEMSELVES
            yield "reference", _OF_DRAWS, _ALONE
        if own.units == "scaled":
            yield "units scaled", ("contributions", "metric"), _NEEDS_OUTPUT
        else:
            yield "units output", _OF_DRAWS, _NEEDS_SLOPES
            if own.contributions == "shapley":
                yield "contributions shapley", ("law",), _NEEDS_SLOPES
        if own.graph is not None:
            yield "graph", ("same_pattern",), _OF_NEAREST

    def scores(self, folder: Path) -> InteractionScores | None:
        """What the file of interactions holds, if one is named."""
        path = self.scores_file(folder)
        if path is None:
            return None
        with part("interactions"):
            try:
                return InteractionScores.load(path)
            except FileNotFoundError:
                raise InvalidInput(
                    f"there is no file {path}; propopt interactions writes one"
                ) from None

    def scores_file(self, folder: Path) -> Path | None:
        """The file of interactions, if one is named."""
        named = self.settings()["interactions"]
        if named is None:
            return None
        with part("interactions"):
            return archive_path(folder / named)

    def build(self, subject: Subject) -> dict[str, Any]:
        """Keyword arguments of :func:`propopt.explain`, but those of files and runs.

        With ``reference`` those of :class:`propopt.Explainer`.
        """
        own = self.settings("reference", "interactions")
        smoothed = isinstance(subject.function, SmoothGradients)  # by model.smooth
        parts = own["units"] == "output" and own["contributions"] == "shapley"
        if own["scale"] == "none":
            own["scale"] = None
        if smoothed and not parts:
            own["law"] = "none"
        elif own["law"] == "lime":
            own["law"] = TextLaw()
        if self.reference is not None:
            of_several = ("graph", "same_pattern", *_OF_DRAWS)
            return {name: own[name] for name in own if name not in of_several}
        if own["graph"] is not None:
            X = subject.coordinates
            own["graph"] = own["graph"].build(X, len(X))
        return own


_OF_DRAWS = ("precision", "max_evaluations")
_BY_THEMSELVES = (
    "rows by themselves are compared with the nearest reference rows; leave the graph "
    "out"
)
_ALONE = "rows are explained together there; leave one out"
_NEEDS_OUTPUT = "these are of units: output"
_NEEDS_SLOPES = "this is of slopes, and none are taken; leave it out"
_OF_NEAREST = "a graph says itself who is similar; knn has same_pattern"


# ---- documents

_OF_COLUMNS: Final = (
    "scale",
    "metric",
    "same_pattern",
    "precision",
    "max_evaluations",
    "interactions",
)


def _check_documents(section: Any, is_text: bool, source: Source) -> None:
    """Refuse what has no meaning for words, and for columns what is of words."""
    user_settings = section.model_fields_set
    if not is_text:
        if section.law == "lime":
            message = "lime deletes words of documents, and there is no data.text"
            raise source.error(("explain", "law"), message)
        return
    for name in _OF_COLUMNS:
        if name in user_settings:
            raise source.error(("explain", name), "has no effect with data.text")
    if section.reference is not None:
        message = "documents are explained together; leave it out"
        raise source.error(("explain", "reference"), message)
    if section.law in ("data", "gaussian"):
        message = "words are deleted, not moved; expected 'auto', 'none' or 'lime'"
        raise source.error(("explain", "law"), message)


# ---- What one explanation prints: its units in words, how it was made, what matters


_SHOWN = 12
"""Features in the printout, those that matter most."""


def print_look(best: Explanation, subject: Subject, console: PlainConsole) -> None:
    """How an explanation was made, and the features that matter most."""
    for name, value in best.parameters.items():
        console.print(f"{name}: {value}")
    losses = ", ".join(f"{name} {value:.4g}" for name, value in best.losses.items())
    console.print(f"{losses}; {gap_in_words(best)}")
    for line in (*_shares_in_words(best), *_parts_in_words(best)):
        console.print(line)
    words = printable(attributions_in_words(best, subject))
    console.print(f"attributions: {words}")
    console.print()
    card = best.card(_SHOWN)
    if subject.is_text:
        _print_words(best, subject, console)
        console.print()
        card = replace(card, rows=())
    console.print(card.text())


def attributions_in_words(best: Explanation, subject: Subject) -> str:
    """What attributions are, as a phrase."""
    if best.base_value is not None:
        return f"{best.units_in_words}; every row adds up to f(x) − base"
    if subject.is_text:
        return best.units_in_words.replace("feature", "word")
    if subject.columns is None:
        return best.units_in_words
    return f"{best.units_in_words}; of a category or a missing number its effect"


def output_parts(best: Explanation) -> dict[str, Any]:
    """The base, and the range of predictions, of attributions that add up to them."""
    bases, values, gap = best.base_value, best.prediction, best.completeness_gap
    if bases is None or values is None or gap is None:
        return {}
    return {
        "base_value": float(bases[0]) if np.ptp(bases) == 0.0 else bases.tolist(),
        "prediction": values.tolist(),
        "completeness_gap": float(np.abs(gap).max()),
    }


def _shares_in_words(best: Explanation) -> list[str]:
    """How much of each loss is kept or removed, where the objective is known."""
    if best.program is None:
        return ["shares: not computed: optimized in the metric of effects"]
    return list(best.shares().in_words())


def _parts_in_words(best: Explanation) -> Iterator[str]:
    """Base and predictions, and how far rows are from adding up."""
    parts = output_parts(best)
    if parts:
        bases, values = np.atleast_1d(parts["base_value"]), parts["prediction"]
        yield (
            f"base {_range(bases)}, predictions {_range(values)}; rows add up to the "
            f"difference within {parts['completeness_gap']:.0e}"
        )


def _range(values: Any) -> str:
    low, high = f"{np.min(values):.4g}", f"{np.max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _print_words(best: Explanation, subject: Subject, console: PlainConsole) -> None:
    """Words that many documents have, or that matter much, by their total size."""
    W = best.to_frame()
    totals = np.abs(W).sum().sort_values(ascending=False)[:_SHOWN]
    times = pd.Series((subject.table > 0.0).sum(axis=0), index=W.columns)
    rows = [
        [str(name), str(times[name]), f"{W[name].sum() / times[name]:.4g}"]
        for name in totals.index
    ]
    title = "Words by the total size of their attributions"
    head = ["word", "documents", "mean where it stands"]
    print_table(console, title, head, rows)


# ---- One explanation that is run: what is written, and what is printed


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FirstLook(SubjectLook[ExplainSection]):
    """What is explained once, with stated defaults; ``run`` writes these files.

    ===================== =============================================================
    ``<name>.npz``        the explanation: :meth:`Explanation.save`
    ``<name>_attributions.csv``
                          its attributions with their names: :meth:`Explanation.to_csv`
    ``<name>.html``       of documents: the first with their words highlighted
    ``<name>.json``       what was explained and how, and the score of the model
    ===================== =============================================================
    """

    key = "explain"
    command = "propopt explain"
    suffixes = (".npz", "_attributions.csv", ".html", ".json")

    name: str = "explanation"  # what the files written are called
    folder: Path = Path()  # from which the section names a file of interactions

    @classmethod
    def of(cls, file: FileOfJob) -> FirstLook:
        """The job of a problem file."""
        section, folder = file.require(cls), file.source.path.parent
        with file.source.blaming("explain"):
            scores = section.scores_file(folder)
        return cls.asked(
            file,
            files=file.files if scores is None else (*file.files, scores),
            model=settings_in_words(file.schema.model),
            description=file.schema.description or "",
            folder=folder,
        )

    @classmethod
    def check(cls, section: ExplainSection, schema: CommonKeys, source: Source) -> None:
        _check_documents(section, schema.data.text is not None, source)
        smoothed = schema.model is not None and schema.model.smooth is not None
        if smoothed and "law" in section.model_fields_set:
            raise source.error(
                ("explain", "law"), "model.smooth chooses a law too; leave one out"
            )

    @classmethod
    def check_extent(
        cls, section: ExplainSection, schema: CommonKeys, extent: Extent
    ) -> None:
        del schema
        graph = section.settings()["graph"]
        with part("explain", "graph"):
            if graph is not None:
                graph.check(extent.n_points)

    @classmethod
    def check_files(cls, section: ExplainSection, folder: Path, extent: Extent) -> None:
        """Refuse a file of interactions of other features than are explained."""
        with part("explain"):
            scores = section.scores(folder)
            if scores is not None:
                with part("interactions"):
                    names = extent.features or None
                    explained_members(scores, names, extent.n_features)

    @classmethod
    def check_formula(
        cls, section: ExplainSection, function: Function, points: Any
    ) -> None:
        del section
        function.gradient(points)

    def solve(self, progress: bool | None = None) -> Explanation:
        """The explanation, by :func:`propopt.explain` or :class:`propopt.Explainer`."""
        section, subject = self.section, self.subject
        how: dict[str, Any] = {"rng": self.seed}
        with part("explain"):
            how["interactions"] = section.scores(self.folder)
            if section.reference is None:
                return explain(
                    subject.function,
                    subject.points,
                    data=subject.others,
                    progress=progress,
                    **how,
                    **section.build(subject),
                )
            explainer = Explainer(
                subject.function,
                subject.others,
                n_reference=section.reference,
                **how,
                **section.build(subject),
            )
            explainer.fit(progress=progress)
            return explainer.explain(subject.points, progress=progress)

    def answer(self, progress: bool | None) -> Answer:
        """The explanation, its attributions, its page, and how it was computed."""
        result, subject = self.solve(progress), self.subject
        aims = (result.parameters.get(name) for name in ("gradient", "contributions"))
        content = manifest(
            self.key,
            self.name,
            subject,
            result,
            gradient=str(next(filter(None, aims))),
            model=self.model,
            units=attributions_in_words(result, subject),
            **output_parts(result),
        )
        writers: dict[str, Writer] = {
            ".npz": result.save,
            "_attributions.csv": result.to_csv,
            **page_writers(result, subject),
            ".json": partial(write_json, content),
        }
        return Answer(result, writers, partial(print_look, result, subject))

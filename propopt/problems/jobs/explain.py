"""``propopt explain``: one explanation with stated defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from propopt.base.errors import InvalidInput, PropoptError
from propopt.base.files import archive_path
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.explainer import Explainer, explain
from propopt.explaining.problem import Sampling, Settings
from propopt.explaining.targets import LawChoice
from propopt.functions import Function
from propopt.interactions.scores import InteractionScores, explained_members
from propopt.lime import TextLaw
from propopt.losses.graphs.neighbours import Nearest
from propopt.problems.baselines import NO_EFFECT
from propopt.problems.jobs.job import Answer, JobSection, manifest, page_writers
from propopt.problems.losses import PointGraph
from propopt.problems.sections import (
    MOST_NUMBERS,
    Nonnegative,
    Positive,
    Section,
    Shaped,
    Smaller,
    part,
    section_of,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, Extent, ProblemFile
from propopt.problems.subject.model_sections import SmoothGradients
from propopt.problems.subject.subject import Subject
from propopt.results.explanation import Explanation
from propopt.results.reasons import Reasons
from propopt.tables.frames import group_sums


_OF_DRAWS = ("precision", "max_evaluations")


@partial(
    section_of,
    Explanation.reasons,
    without=("rows",),
    groups=(
        dict[str, list[str]] | None,
        "features that are one reason, as lists by the name of the group",
    ),
    delta=(
        Nonnegative | None,
        "the change of a row that a clear reason survives, in the unit of the output; "
        "by default 5 % of the root mean square size of a row",
    ),
)
class ReasonsSection(Section):
    """The largest contributions of each row towards a decision."""


@partial(
    section_of,
    Settings,
    told=Explainer,
    also=Sampling,
    without=(
        "target",
        "output",
        "outcome",
        "batch_rows",
        "rng",
        "sample_weight",
        "sampling",
    ),
    scale=(
        Literal["std", "none"] | dict[str, Positive],
        "attributions are changes per so much of each feature: its standard deviation, "
        "one, or a number for each",
    ),
    graph=(PointGraph | None, "who is similar; by default the eight nearest rows"),
    robustness=(
        Annotated[
            Nonnegative | Literal["knee"] | Smaller | None,
            Shaped("a weight, knee, or a share such as -50%"),
        ],
        "its weight, knee, or by how much differences are to be smaller, such as -50%; "
        "by default contributions move a quarter of the way to the nearest rows, and "
        "slopes take the knee of the whole curve",
    ),
    same_pattern=(
        bool,
        "leave out neighbours in which other columns are missing",
        False,
    ),
    beside=(
        Literal["auto", "own_value"] | None,
        "what similar rows may differ in: by default what a column's own value "
        "contributes, and nothing of slopes; null for nothing",
    ),
    law=(
        Literal[LawChoice, "lime"],
        "over what a model is averaged before its slopes are taken: observed values "
        "near each row, gaussian noise, or nothing; by default observed values where "
        "it jumps. Of documents none, for effects of words, which is the default, or "
        "lime, for what the lime package tends to",
    ),
    kind="contributions, parts of the output that add up to f(x) less its mean in "
    "every row; or slopes, changes of the output per scale",
    metric="how moves of columns count in contributions: over what each does jointly "
    "with others, alike, or over the mean square of its contributions",
    contributions=(
        ContributionChoice,
        "what attributions in units of the output are close to",
    ),
    groups=(
        dict[str, list[str]] | None,
        "columns that are one player, as lists by the name of the group: contributions "
        "are Shapley values of the game among groups",
    ),
    interactions=(
        str | None,
        "path, from that of this file, of the .npz that propopt interactions writes, "
        "or their save: a sentence names what matters jointly",
        None,
    ),
)
class ExplainSection(JobSection):
    """One explanation, by the defaults of :func:`propopt.explain`.

    ===================== =============================================================
    ``<name>.npz``        the explanation: :meth:`Explanation.save`
    ``<name>_attributions.csv``
                          its attributions with their names: :meth:`Explanation.to_csv`
    ``<name>_reasons.csv``
                          with ``reasons``: :meth:`Reasons.to_csv`, a line for each
    ``<name>.html``       of documents: the first with their words highlighted; with
                          ``--report`` a page of what was found
    ``<name>.json``       what was explained and how, and the score of the model
    ===================== =============================================================
    """

    key = command = "explain"
    weighs_rows = True
    suffixes: ClassVar[tuple[str, ...]] = (
        ".npz",
        "_attributions.csv",
        "_reasons.csv",
        ".html",
        ".json",
    )

    reference: Annotated[int, Field(ge=2, le=MOST_NUMBERS)] | None = Field(
        None,
        description="explain each row by itself, given so many reference rows, drawn "
        "from those that the model is fitted on: the same whoever else is explained",
    )

    reasons: ReasonsSection | None = Field(
        None,
        description="the largest contributions of each row towards a decision, and "
        "whether they are clear; of kind: contributions; {} takes all defaults",
    )

    of_tables: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("scale", "metric", "same_pattern"), NO_EFFECT),
        **dict.fromkeys((*_OF_DRAWS, "interactions", "beside", "groups"), NO_EFFECT),
        "reference": "documents are explained together; leave it out",
    }

    def conflicts(self) -> Iterator[PropoptError]:
        own: Any = self
        slopes = own.kind == "slopes" and "kind slopes"
        for setting, others, reason in (
            (self.reference and "reference", ("graph", "same_pattern"), _BY_THEMSELVES),
            (self.reference and "reference", ("beside",), _ALONE),
            (self.reference and "reference", _OF_DRAWS, _ALONE),
            (slopes, ("contributions", "metric", "beside", "groups"), _NEEDS_OUTPUT),
            (own.graph and "graph", ("same_pattern",), _OF_NEAREST),
        ):
            unused = [name for name in others if name in self.model_fields_set]
            if setting and unused:
                yield wrong(f"{setting} and {', '.join(unused)}: {reason}")

    def mistakes(self, schema: CommonKeys) -> Iterator[PropoptError]:
        """A law that is none of words, or of columns, or told twice."""
        own: Any = self
        place = (self.key, "law")
        slopes = own.kind == "slopes" and schema.data.text is None
        if slopes and self.reasons is not None:
            yield wrong(
                "reasons are contributions to the output, and these are slopes; write "
                "kind: contributions",
                self.key,
                "reasons",
            )
        if schema.data.text is None and own.law == "lime":
            message = "lime deletes words of documents, and there is no data.text"
            yield wrong(message, *place)
        if schema.data.text is not None and own.law in ("data", "gaussian"):
            words = "words are deleted, not moved"
            yield wrong(f"{words}; expected 'auto', 'none' or 'lime'", *place)
        smoothed = schema.model is not None and schema.model.smooth is not None
        if smoothed and "law" in self.model_fields_set:
            yield wrong("model.smooth chooses a law too; leave one out", *place)
        elif schema.data.text is None and own.law != "lime":
            unused = own.kind != "slopes" and own.contributions == "shapley"
            if unused and "law" in self.model_fields_set:
                yield wrong(f"contributions shapley and law: {_NEEDS_SLOPES}", self.key)

    def check(self, extent: Extent) -> None:
        own: Any = self
        if own.graph is not None:
            with part("graph"):
                own.graph.check_nodes(extent.n_points)
        if own.groups and extent.features:
            with part("groups"):
                group_sums(own.groups, extent.features)
        if own.reasons is not None and own.reasons.groups and extent.features:
            with part("reasons"):
                group_sums(own.reasons.groups, extent.features)
        scores = self.scores(extent.folder)
        if scores is not None:
            with part("interactions"):
                names = extent.features or None
                explained_members(scores, names, extent.n_features)

    def check_formula(self, function: Function, points: Any) -> None:
        function.gradient(points)

    def scores(self, folder: Path) -> InteractionScores | None:
        """What the file of interactions holds, if one is named."""
        path = self.scores_file(folder)
        with part("interactions"):
            try:
                return None if path is None else InteractionScores.load(path)
            except FileNotFoundError:
                raise InvalidInput(
                    f"there is no file {path}; propopt interactions writes one"
                ) from None

    def scores_file(self, folder: Path) -> Path | None:
        """The file of interactions, if one is named."""
        named = self.settings()["interactions"]
        with part("interactions"):
            return None if named is None else archive_path(folder / named)

    def others_read(self, file: ProblemFile) -> Sequence[Path]:
        with part(self.key):
            scores = self.scores_file(file.source.path.parent)
        return () if scores is None else (scores,)

    def build(self, subject: Subject) -> dict[str, Any]:
        """What ``explain`` or ``Explainer`` takes, but of files and runs."""
        own = self.settings("reference", "interactions", "reasons")
        smoothed = isinstance(subject.function, SmoothGradients)  # by model.smooth
        parts = own["kind"] != "slopes" and own["contributions"] == "shapley"
        if own["scale"] == "none":
            own["scale"] = None
        if smoothed and not parts:
            own["law"] = "none"
        elif own["law"] == "lime":
            own["law"] = TextLaw()
        draws = {name: own.pop(name) for name in _OF_DRAWS}
        nearest = Nearest(same_pattern=own.pop("same_pattern"))
        if self.reference is not None:
            nearest = replace(nearest, n_reference=self.reference)
        graph, X = own["graph"], subject.coordinates
        own["graph"] = nearest if graph is None else graph.build(X, len(X))
        return {**own, "sampling": Sampling(**draws)}

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Explanation:
        """The explanation, by :func:`propopt.explain` or :class:`propopt.Explainer`."""
        subject, function = file.subject, file.subject.function
        with part(self.key):
            scores = self.scores(file.source.path.parent)
            how = self.build(subject)
            how["sampling"] = replace(how["sampling"], rng=file.schema.seed)
            how["sample_weight"] = subject.sample_weight
            points, others = subject.points, subject.others
            best = explain(function, points, others, progress=progress, **how)
            return best if scores is None else scores.noted_in(best)

    def answers(self, found: Explanation, file: ProblemFile) -> Iterator[Answer]:
        aims = (found.parameters.get(name) for name in ("gradient", "contributions"))
        words = attributions_in_words(found, file.subject)
        told = {
            **manifest(file.subject, found, gradient=str(next(filter(None, aims)))),
            "model": file.model,
            "units": words,
            **_output_parts(found),
        }
        page = page_writers(found, file.subject)
        writers = {".npz": found.save, "_attributions.csv": found.to_csv, **page}
        yield Answer(writers, told, [f"attributions: {words}"], [found.document()])
        if self.reasons is not None:
            with part(self.key, "reasons"):
                best = _as_read(found, file.subject.unscaled)
                reasons = best.reasons(**self.reasons.settings())
            writers = {"_reasons.csv": reasons.to_csv}
            sheets, shown = _sheets(reasons), [reasons.document()]
            yield Answer(writers, {"reasons": _told(reasons)}, sheets, shown)

    def with_reasons(self) -> ExplainSection:
        """The same, with reasons by their defaults if it asks for none."""
        reasons = self.reasons or ReasonsSection()
        return self.model_copy(update={"reasons": reasons})


_BY_THEMSELVES = (
    "rows by themselves are compared with the nearest reference rows; leave the graph "
    "out"
)
_ALONE = "rows are explained together there; leave one out"
_NEEDS_OUTPUT = "these are of kind: contributions"
_OF_NEAREST = "a graph says itself who is similar; knn has same_pattern"
_NEEDS_SLOPES = "this is of slopes, and none are taken; leave it out"


_SHOWN: Final = 12
"""Features in the printout, those that matter most."""


_SHEETS: Final = 10
"""Rows whose reasons are printed, the first."""


def _sheets(reasons: Reasons) -> list[str]:
    """Reasons of the first rows, and where the others are."""
    lines: list[str] = []
    for sheet in islice(reasons.sheets(), _SHEETS):
        lines += ["", *sheet.split("\n")]
    more = len(reasons.names) - _SHEETS
    return [*lines, f"{more} more rows are in the file"] if more > 0 else lines


def _as_read(best: Explanation, unscaled: pd.DataFrame | None) -> Explanation:
    """With numbers as readers know them in place of standardized ones."""
    if unscaled is None or best.points is None:
        return best
    points, names = np.array(best.points), best.to_frame().columns
    for j, name in enumerate(names):
        if name in unscaled:
            points[:, j] = unscaled[name].to_numpy(float, na_value=np.nan)
    return replace(best, points=points)


def _told(reasons: Reasons) -> dict[str, Any]:
    """What a manifest has of them."""
    told = ("k", "towards", "source", "least_share", "meaning", "notes")
    own = {name: getattr(reasons, name) for name in told}
    return {**own, "clear": reasons.shares}


def attributions_in_words(best: Explanation, subject: Subject) -> str:
    """What attributions are, as a phrase."""
    words = best.units_in_words
    if best.base_value is not None:
        return f"{words}; every row adds up to f(x) − base"
    if subject.is_text:
        return words.replace("feature", "word")
    if subject.columns is None:
        return words
    return f"{words}; of a category or a missing number its effect"


def _output_parts(best: Explanation) -> dict[str, Any]:
    """The base, and the range of predictions, of attributions that add up to them."""
    bases, values, gap = best.base_value, best.prediction, best.completeness_gap
    if bases is None or values is None or gap is None:
        return {}
    return {
        "base_value": float(bases[0]) if np.ptp(bases) == 0.0 else bases.tolist(),
        "prediction": values.tolist(),
        "completeness_gap": float(np.abs(gap).max()),
    }

"""``propopt explain``: one explanation with stated defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from propopt.base.errors import PropoptError
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.explainer import Explainer, explain
from propopt.explaining.problem import Sampling, Settings
from propopt.explaining.targets import LawChoice
from propopt.functions import Function
from propopt.lime import TextLaw
from propopt.problems.jobs.job import (
    JobOutput,
    JobRun,
    JobSection,
    manifest,
    page_writers,
)
from propopt.problems.losses import NO_EFFECT, PointGraph
from propopt.problems.sections import (
    Nonnegative,
    Positive,
    Section,
    Shaped,
    Smaller,
    part,
    section_of,
    wrong,
)
from propopt.problems.subject.data import CommonKeys, DataShape, ProblemFile
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
        *("target", "output", "outcome", "sample_weight", "sampling"),
        *("batch_rows", "rng"),
    ),
    scale=Literal["std", "none"] | dict[str, Positive],
    graph=(PointGraph | None, "who is similar; by default the eight nearest rows"),
    robustness=Annotated[
        Nonnegative | Literal["knee"] | Smaller | None,
        Shaped("a weight, knee, or a share such as -50%"),
    ],
    offset=Literal["auto", "main_effects"] | None,
    law=(
        Literal[LawChoice, "lime"],
        "over what a model is averaged before its slopes are taken: observed values "
        "near each row, gaussian noise, or nothing; by default observed values where "
        "it jumps. Of documents none, for effects of words, which is the default, or "
        "lime, for what the lime package tends to",
    ),
    contributions=ContributionChoice,
    groups=dict[str, list[str]] | None,
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

    reasons: ReasonsSection | None = Field(
        None,
        description="the largest contributions of each row towards a decision, and "
        "whether they are clear; of kind: contributions; {} takes all defaults",
    )

    of_tables: ClassVar[dict[str, str]] = dict.fromkeys(
        ("scale", "metric", *_OF_DRAWS, "offset", "groups"), NO_EFFECT
    )

    def conflicts(self) -> Iterator[PropoptError]:
        own: Any = self
        others = ("contributions", "metric", "offset", "groups")
        unused = [name for name in others if name in self.model_fields_set]
        if own.kind == "slopes" and unused:
            needs = "these are of kind: contributions"
            yield wrong(f"kind slopes and {', '.join(unused)}: {needs}")

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
        if schema.data.text is None and own.law != "lime":
            unused = own.kind != "slopes" and own.contributions == "shapley"
            if unused and "law" in self.model_fields_set:
                needs = "this is of slopes, and none are taken; leave it out"
                yield wrong(f"contributions shapley and law: {needs}", self.key)

    def check(self, data_shape: DataShape) -> None:
        own: Any = self
        if own.graph is not None:
            with part("graph"):
                own.graph.check_nodes(data_shape.n_points)
        if own.groups and data_shape.features:
            with part("groups"):
                group_sums(own.groups, data_shape.features)
        if own.reasons is not None and own.reasons.groups and data_shape.features:
            with part("reasons"):
                group_sums(own.reasons.groups, data_shape.features)

    def check_formula(self, function: Function, points: Any) -> None:
        function.gradient(points)

    def build(self, subject: Subject) -> dict[str, Any]:
        """What ``explain`` takes, but of files and runs."""
        own = self.settings("reasons")
        if own["scale"] == "none":
            own["scale"] = None
        if own["law"] == "lime":
            own["law"] = TextLaw()
        draws = {name: own.pop(name) for name in _OF_DRAWS}
        if own["graph"] is not None:
            X = subject.coordinates
            own["graph"] = own["graph"].build(X, len(X))
        return {**own, "sampling": Sampling(**draws, rng=subject.seed)}

    def solve(self, file: ProblemFile, progress: bool | None = None) -> Explanation:
        """The explanation, by :func:`propopt.explain`."""
        subject = file.subject
        with part(self.key):
            return explain(
                subject.function,
                subject.points,
                subject.others,
                sample_weight=subject.sample_weight,
                progress=progress,
                **self.build(subject),
            )

    def outputs(self, found: Explanation, run: JobRun) -> Iterator[JobOutput]:
        file: ProblemFile = run.file
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
        yield JobOutput(writers, told, [f"attributions: {words}"], [found.document()])
        if self.reasons is not None:
            with part(self.key, "reasons"):
                best = _as_read(found, file.subject.unscaled)
                reasons = best.reasons(**self.reasons.settings())
            writers = {"_reasons.csv": reasons.to_csv}
            sheets, shown = _sheets(reasons), [reasons.document()]
            yield JobOutput(writers, {"reasons": _told(reasons)}, sheets, shown)

    def with_reasons(self) -> ExplainSection:
        """The same, with reasons by their defaults if it asks for none."""
        reasons = self.reasons or ReasonsSection()
        return self.model_copy(update={"reasons": reasons})


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

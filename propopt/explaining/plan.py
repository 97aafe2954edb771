"""What is asked of an explanation, and rows explained together as it asks."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Points, Positions, Truths, Values
from propopt.base.checks import known_word, read_count, read_rng, read_share
from propopt.base.errors import ImpreciseWarning, InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.text import is_sampled, printable
from propopt.explaining.contributions import (
    AnyRule,
    ContributionChoice,
    ContributionRule,
    ContributionsLike,
)
from propopt.explaining.targets import (
    N_NEIGHBORS,
    FeatureMetric,
    LawChoice,
    TargetRule,
    Targets,
    coordinates_of,
    graph_of_rows,
    nearest_explanation,
    target_rule,
)
from propopt.functions import Function
from propopt.functions.cost import cost_of
from propopt.functions.means import SampledMean
from propopt.functions.outputs import Output, Target
from propopt.laws.data_law import Reference
from propopt.laws.draws import Sample
from propopt.losses import PairwiseRobustness, SharedRobustness
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.points import Graph, knn_graph
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.frames import Labels
from propopt.tables.schema import ColumnScale


if TYPE_CHECKING:
    from propopt.interactions.scores import InteractionScores as InteractionScores
    from propopt.lime.text.text_reading import TextLaw as TextLaw
else:  # rooms that explaining a table has no use for, and does not load
    InteractionScores = TextLaw = Any


# ---- What is asked: each setting is declared once, with its checks


UnitsChoice: TypeAlias = Literal["scaled", "output"]

OwnValueChoice: TypeAlias = Literal["own_value"]
BesideLike: TypeAlias = Any
"""``"own_value"``, or a table (N, D), or None."""

MOST_REFERENCE_ROWS: Final = 500


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainSettings:
    """What :func:`propopt.explain` and :class:`propopt.Explainer` are asked.

    Their signatures, and the section ``explain`` of problem files, have these names and
    defaults; what each means is told there.
    """

    target: Target = None
    output: Output = "auto"
    outcome: str | None = None
    scale: ColumnScale = "std"
    units: UnitsChoice = "scaled"
    contributions: ContributionsLike = "shapley"
    metric: FeatureMetric = "uniform"
    law: LawChoice | TextLaw = "auto"
    graph: Graph | None = None
    same_pattern: bool = False
    beside: BesideLike = None
    n_neighbors: int = N_NEIGHBORS
    robustness: float | str | None = None
    n_reference: int = MOST_REFERENCE_ROWS
    precision: float | None = None
    max_evaluations: int | None = None
    batch_rows: int | None = None
    interactions: InteractionScores | None = None
    rng: int | np.random.Generator | None = None

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> Self:
        """Those among names and values, such as the arguments of a call."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: x for name, x in named.items() if name in known})

    @property
    def law_of_columns(self) -> LawChoice:
        """The law of the slopes of a table; one that deletes words is refused."""
        if not isinstance(self.law, str):
            from propopt.lime.text import text_reading

            if isinstance(self.law, text_reading.TextLaw):
                raise InvalidInput(
                    "law: a TextLaw deletes words of documents, and X is a table of "
                    "rows"
                )
        return self.law

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Refuse the settings that are not as they are by default, with the reason."""
        for name, reason in reasons.items():
            value, default = getattr(self, name), getattr(type(self), name)
            same = isinstance(value, str | int | float) and value == default
            if not (value is default or same):
                raise InvalidInput(f"{name}: {reason}")

    def refuse_for_rows(self) -> None:
        """Refuse what rows by themselves do not take."""
        self.refuse(dict.fromkeys(_OF_SEVERAL_ROWS, _ALONE))
        known_word(self.units, UnitsChoice, "units")
        known_word(self.metric, FeatureMetric, "metric")
        if not isinstance(self.contributions, str):
            raise InvalidInput(
                "contributions: those of rows to come are not known; expected "
                "'shapley' or 'slopes', which an Explainer makes of any row. "
                "po.explain(model, X, contributions=table) explains several rows "
                "together"
            )
        known_word(self.contributions, ContributionChoice, "contributions")
        if self.units == "scaled":
            reason = "it is of units='output', and units is 'scaled'"
            self.refuse(dict.fromkeys(("contributions", "metric"), reason))
            return
        if self.contributions == "shapley":
            reason = (
                f"{self.law!r} is of slopes, and Shapley values take none; leave it "
                "out, or take contributions='slopes'"
            )
            self.refuse({"law": reason})


_OF_SEVERAL_ROWS: Final = ("same_pattern", "beside", "precision", "max_evaluations")

_ALONE: Final = (
    "one row is compared with fixed rows of data, where it has no meaning; leave it "
    "out, or give two rows or more"
)

OF_TABLES: Final = {
    "scale": "words have no scale: their attributions are in units of the output",
    "metric": "over words that documents share all words count alike; leave it out",
    "same_pattern": "documents have no missing numbers; leave it out",
    "beside": "words are there or not, and have no values of their own; leave it out",
    "precision": "effects of words are exact; leave it out",
    "interactions": "they are of columns of a table, and documents have words",
    "max_evaluations": "effects of words take one text for each; leave it out",
}
"""What has no meaning for documents, and why."""


# ---- Rows that are explained together: what they aim at, who is alike, the optimum


MOST_STABLE = 1_000
"""Rows whose stability is computed at once: it takes two more eigenbases."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointPlan(ABC):
    """Rows or documents, and all that their explanation together depends on."""

    settings: ExplainSettings
    function: Function  # the model
    points: Points  # (N, D): the rows, as they are read
    labels: Labels  # their names
    progress: bool | None = None  # whether to show bars

    @property
    @abstractmethod
    def robust(self) -> PairwiseRobustness | SharedRobustness:
        """The loss of robustness, between those that are similar."""

    @property
    def weight(self) -> tuple[float | str | None, str]:
        """That of robustness, None for that at the knee; and where it comes from."""
        own = self.settings.robustness
        if isinstance(own, str):
            share = read_share(own, "robustness")
            return own, f"roughness {100.0 * share:g} % smaller"
        return own, "knee of the front" if own is None else "given"

    def nearest(self, known: Targets) -> Explanation:
        """The optimum for targets, with these beside it."""
        parts = known.base is not None and isinstance(self.robust, PairwiseRobustness)
        metric: FeatureMetric = self.settings.metric if parts else "uniform"
        weight, _ = self.weight
        return nearest_explanation(
            known, self.robust, robustness=weight, metric=metric, progress=self.progress
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class JointRows(JointPlan):
    """Rows of a table, and all that their explanation together depends on."""

    reference: Reference  # the rows that scales and laws are made of
    sizes: Array  # (D,): the scale of each feature; 0 if constant

    @cached_property
    def coordinates(self) -> Array:
        """Where the rows lie, (N, M), so that distances mean something."""
        return coordinates_of(self.function, self.points, self.sizes)

    @cached_property
    def graph(self) -> Graph:
        """Who is similar: nearest neighbours, if no graph is given."""
        asked = self.settings
        if asked.graph is None:
            return knn_graph(
                self.coordinates, self.n_neighbors, same_pattern=asked.same_pattern
            )
        return graph_of_rows(asked.graph, len(self.points))

    @property
    def n_neighbors(self) -> int:
        """How many rows each is compared with."""
        asked = read_count(self.settings.n_neighbors, "n_neighbors")
        return min(asked, len(self.points) - 1)

    @cached_property
    def robust(self) -> PairwiseRobustness:
        """Between rows that are joined by the graph, beside own values if asked."""
        return PairwiseRobustness(self.graph, beside=self.beside)

    @cached_property
    def beside(self) -> Any:
        """What rows may differ in: a table, own values that are made here, or None."""
        asked = self.settings
        if not isinstance(asked.beside, str):
            return asked.beside
        known_word(asked.beside, OwnValueChoice, "beside")
        rule = self.rule
        if not isinstance(rule, ContributionRule):
            raise InvalidInput(
                "beside: own values are parts of the output, and units is 'scaled'; "
                "take units='output', or give a table of slopes"
            )
        from propopt.explaining.explainers.own_value import (
            own_values_of,
            told_background,
        )

        assert rule.background is not None, "see rule"
        whose = told_background(len(rule.background), self.reference.n_rows, "data")
        return own_values_of(
            self.function, self.points, self.labels, rule.background, whose
        )

    @cached_property
    def rule(self) -> AnyRule:
        """How slopes are made, or contributions."""
        asked = self.settings
        law, rng, reference = asked.law_of_columns, asked.rng, self.reference
        if asked.units == "scaled":
            return target_rule(self.function, reference, self.sizes, law=law, rng=rng)
        rule = ContributionRule(
            function=self.function,
            reference=reference,
            kind=asked.contributions,
            law=law,
            rng=rng,
            draws=DrawPlan(100, 0, asked.precision, asked.max_evaluations),
        )
        if isinstance(asked.beside, str):  # own values have the same background
            return replace(rule, background=rule.drawn(read_rng(rng)))
        return rule

    def told_of_own_values(self, best: Explanation) -> dict[str, Parameter]:
        """How much of the differences of contributions follows from own values."""
        if not isinstance(self.settings.beside, str):
            return {}
        share = self.beside.context(best.contributions, self.graph)
        return {"own value": " ".join(share.in_words())}

    @property
    def note(self) -> dict[str, Parameter]:
        """What matters jointly, where that is known."""
        n_features = self.points.shape[1]
        return note_on_interactions(self.labels, n_features, self.settings.interactions)

    def best(self, rule: AnyRule) -> Explanation:
        """The optimum for what the rule makes, as precisely as is asked."""
        if isinstance(rule, TargetRule):
            best = self.nearest(Targets(estimate=self._slopes(rule)))
        else:
            if self.settings.precision is not None:
                rule = replace(rule, error=self._error)
            best = self.nearest(rule.of(self.points, self.labels))
        precision = self.settings.precision
        if precision is not None and not best.target_error <= precision:
            error = "is not known" if best.target is None else best.target.in_words()
            warnings.warn(
                f"precision: a target error of {precision:.2g} was wanted: {error}; "
                "more max_evaluations would do where it is drawn",
                ImpreciseWarning,
                stacklevel=3,
            )
        return best

    def _error(self, known: Targets) -> float:
        return self.nearest(known).target_error

    def _slopes(self, rule: TargetRule) -> Estimate:
        """Slopes that are drawn on until their error costs little, where that is asked.

        What the first draws cost is said before, by default where they take long.
        """
        mean = rule.function
        if not isinstance(mean, SampledMean):
            return rule.at(self.points, self.labels)
        settings, points, labels = self.settings, self.points, self.labels
        most = settings.max_evaluations
        first = mean.n_samples * mean.per_draw_at(points)
        cost = cost_of(mean.function, points, labels, first)
        with cost.announced("explain: the first draws", mean.calls, self.progress):
            growing = mean.growing_at(points, labels, max_evaluations=most)
        if settings.precision is not None:

            def error(drawn: Sample) -> float:
                return self._error(Targets(estimate=rule.scaled(drawn.estimate)))

            growing = growing.until(settings.precision, most, error)
        return rule.scaled(growing.estimate)


def stability_in_words(best: Explanation) -> str:
    """Whether conclusions survive other weights, neighbours and draws."""
    if best.shape[0] > MOST_STABLE:
        return f"not computed for more than {MOST_STABLE:,} rows: see stability()"
    if best.program is None:
        return "not computed: attributions were optimized in the metric of effects"
    weighed = sum(weight > 0.0 for weight in best.weights.values())
    if weighed < 2 and not is_sampled(best):
        return "nothing varies: robustness has no weight, and nothing is drawn"
    return "; ".join(best.stability().in_words())


# ---- What additive attributions cannot show, in a sentence: what matters jointly


_MOST_NAMED: Final = 5
"""Sets that are named; of others it is said how many there are."""


def note_on_interactions(
    labels: Labels, n_features: int, result: InteractionScores | None
) -> dict[str, Parameter]:
    """The sentence as the note of an explanation; nothing where no scores are given."""
    if result is None:
        return {}
    from propopt.interactions.scores import clear_scores

    above, below = clear_scores(result)
    names = labels.features if labels.columns is None else labels.columns
    members = explained_members(result, names, n_features)
    own = labels.feature_names(n_features)
    shown = [
        printable(own[indices[0]] if len(indices) == 1 else name)
        for name, indices in zip(result.names, members, strict=True)
    ]
    sets = [" × ".join(shown[place] for place in one) for one in result.sets.tolist()]
    return {"notes": _sentence(result, sets, above, below)}


def explained_members(
    result: InteractionScores, names: Sequence[Hashable] | None, n_features: int
) -> list[Positions]:
    """Where the columns of each feature of a result stand among those explained."""
    from propopt.interactions.scores import indices_of_columns

    if result.order < 2:
        raise InvalidInput(
            "interactions: expected scores of pairs or larger sets, got those of "
            "single features, which attributions show; interactions(order=2) of a "
            "fitted ILOCO gives pairs"
        )
    return indices_of_columns(result, names, n_features, "the explained table")


def with_note(
    parameters: Mapping[str, Parameter], note: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """What an explanation says of itself, with one note more."""
    notes = [str(own["notes"]) for own in (parameters, note) if "notes" in own]
    return {**parameters, **({"notes": "; ".join(notes)} if notes else {})}


def _sentence(
    result: InteractionScores, sets: Sequence[str], joint: Truths, instead: Truths
) -> str:
    from propopt.interactions.scores import intervals_in_words

    above = _named(sets, joint, result.estimates)
    below = _named(sets, instead, result.estimates)
    parts = []
    if above:
        parts.append(f"{above} matter jointly, which no additive attribution can show")
    if below and result.order == 2:
        parts.append(
            f"{below} stand in for each other, so that another fit may divide their "
            "attributions otherwise where they are correlated"
        )
    if not parts:
        parts.append(f"of {len(sets):,} sets of features none clearly matters jointly")
    return (
        f"interactions (iLOCO of learners that were fitted again, in "
        f"{printable(result.units)}, {intervals_in_words(result)}): "
        f"{', and '.join(parts)}"
    )


def _named(sets: Sequence[str], own: Truths, scores: Values) -> str:
    """The largest of some sets with their scores, and how many more there are."""
    indices: Positions = np.flatnonzero(own)
    order = indices[np.argsort(-np.abs(scores[indices]), kind="stable")]
    words = [f"{sets[q]} ({scores[q]:.3g})" for q in order[:_MOST_NAMED]]
    if len(order) > _MOST_NAMED:
        words.append(f"{len(order) - _MOST_NAMED:,} more")
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))

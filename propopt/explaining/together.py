"""Rows explained together, and what additive attributions cannot show."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Points, Positions, Truths, Values
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.text import printable
from propopt.explaining.contributions import ContributionRule, complete_explanation
from propopt.explaining.settings import ClearScores, ExplainSettings, InteractionScores
from propopt.explaining.targets import (
    Effort,
    TargetRule,
    coordinates_of,
    optimum,
    sizes_of,
    target_rule,
)
from propopt.functions import Function
from propopt.laws.data_law import Reference
from propopt.losses import (
    GradientMatching,
    Objective,
    PairwiseRobustness,
    Smoothness,
)
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.points import Graph, knn_graph, read_graph
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.frames import Labels


# ---- Rows that are explained together: what they aim at, who is alike, the optimum


MOST_STABLE = 1_000
"""Rows whose stability is computed at once: it takes two more eigenbases."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class JointPlan:
    """Rows of a table, and all that their explanation together depends on."""

    settings: ExplainSettings
    function: Function  # the model
    reference: Reference  # the rows that scales and laws are made of
    points: Points  # (N, D): the rows, as they are read
    labels: Labels  # their names
    progress: bool | None  # whether to show bars

    @cached_property
    def sizes(self) -> Array:
        """The scale of each feature, (D,); 0 if constant."""
        return sizes_of(self.function, self.reference, self.settings.scale)

    @cached_property
    def coordinates(self) -> Array:
        """Where the rows lie, (N, M), so that distances mean something."""
        return coordinates_of(self.function, self.points, self.sizes)

    @cached_property
    def graph(self) -> Graph:
        """Who is similar: nearest neighbours, if no graph is given."""
        asked, n_rows = self.settings, len(self.points)
        if asked.graph is None:
            if asked.lengthscale is not None and asked.weights == "uniform":
                raise InvalidInput("lengthscale: it needs weights='gaussian'")
            return knn_graph(
                self.coordinates,
                min(read_count(asked.n_neighbors, "n_neighbors"), n_rows - 1),
                weights=asked.weights,
                lengthscale=asked.lengthscale,
                same_pattern=asked.same_pattern,
            )
        graph = read_graph(asked.graph)
        if graph.n_nodes != n_rows:
            raise InvalidInput(
                f"graph: expected one of the {n_rows} rows of X, got one of "
                f"{graph.n_nodes} nodes; make it of X, as by po.knn_graph(X, 8)"
            )
        return graph

    @cached_property
    def rule(self) -> TargetRule:
        """How slopes are made."""
        law, rng = self.settings.law_of_columns, self.settings.rng
        return target_rule(self.function, self.reference, self.sizes, law=law, rng=rng)

    @cached_property
    def parts(self) -> ContributionRule:
        """How contributions are made."""
        law, rng = self.settings.law_of_columns, self.settings.rng
        return ContributionRule(
            function=self.function, reference=self.reference, law=law, rng=rng
        )

    @cached_property
    def smooth(self) -> tuple[Smoothness | None, float]:
        """The loss of which features are similar, and its weight; None and 0."""
        if self.settings.smoothness is None:
            return None, 0.0
        terms = Objective.of(self.settings.smoothness).terms
        weight, loss = terms[0]
        if len(terms) != 1 or not isinstance(loss, Smoothness):
            raise InvalidInput(
                "smoothness: expected a weight times po.Smoothness(graph), got "
                f"{self.settings.smoothness!r}: a row by itself has a closed form "
                "under no other loss; solve all rows together by po.solve"
            )
        return loss, weight

    @property
    def note(self) -> dict[str, Parameter]:
        """What matters jointly, where that is known."""
        n_features = self.points.shape[1]
        return note_on_interactions(self.labels, n_features, self.settings.interactions)

    @property
    def weight_rule(self) -> str:
        """Where the weight of robustness comes from."""
        given = self.settings.robustness is not None
        return "given" if given else "knee of the curve"

    def slopes(self) -> Explanation:
        """Robust slopes per scale."""
        effort = Effort(
            precision=self.settings.precision,
            max_evaluations=self.settings.max_evaluations,
            progress=self.progress,
        )
        return effort.spent(self.rule, self.points, self.labels, self._nearest)

    def contributions(self, parts: ContributionRule) -> Explanation:
        """Robust contributions that add up to the prediction less the base."""
        metric = self.settings.metric
        known = parts.of(self.points, self.labels, self.settings.contributions)
        best = complete_explanation(
            known,
            self.graph,
            robustness=self.settings.robustness,
            metric=metric,
            progress=self.progress,
        )
        return replace(
            best,
            parameters={
                "contributions": known.estimate.source,
                "contributions miss": known.missed,
                "metric": metric,
                **notes_of(known.estimate),
            },
        )

    def _nearest(self, aim: Estimate) -> Explanation:
        """The optimum for slopes, with the slopes beside it."""
        smooth, c = self.smooth
        rest = [
            (1.0, GradientMatching(aim)),
            *([] if smooth is None else [(c, smooth)]),
        ]
        robust = PairwiseRobustness(self.graph)
        best = optimum(rest, robust, self.settings.robustness, self.progress)
        return beside_target(best, aim)


def beside_target(best: Explanation, aim: Estimate) -> Explanation:
    """An optimum with the target that it is nearest to, in its units."""
    return replace(
        best,
        labels=aim.labels,
        units=aim.units,
        evaluations=aim.evaluations,
        details={**best.details, "gradient": aim.values},
        parameters={"gradient": aim.source, **notes_of(aim)},
    )


def notes_of(aim: Estimate) -> dict[str, Parameter]:
    """What a reader has to know of a target, as a setting; nothing where it is that."""
    return {"notes": "; ".join(aim.notes)} if aim.notes else {}


def stability_in_words(best: Explanation) -> str:
    """Whether conclusions survive other weights, neighbours and draws."""
    if best.shape[0] > MOST_STABLE:
        return f"not computed for more than {MOST_STABLE:,} rows: see stability()"
    if best.program is None:
        return "not computed: attributions were optimized in the metric of effects"
    weighed = sum(weight > 0.0 for weight in best.weights.values())
    sampled = best.target is not None and best.target.n_blocks > 0
    if weighed < 2 and not sampled:
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

    clear = clear_scores(result)
    names = labels.features if labels.columns is None else labels.columns
    members = explained_members(result, names, n_features)
    own = labels.feature_names(n_features)
    shown = [
        printable(own[indices[0]] if len(indices) == 1 else name)
        for name, indices in zip(result.names, members, strict=True)
    ]
    sets = [" × ".join(shown[place] for place in one) for one in result.sets.tolist()]
    return {"notes": _sentence(clear, sets, result)}


def explained_members(
    result: InteractionScores, names: Sequence[Hashable] | None, n_features: int
) -> list[Positions]:
    """Where the columns of each feature of a result stand among those explained.

    names (D,).
    """
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
    clear: ClearScores, sets: Sequence[str], result: InteractionScores
) -> str:
    above = _named(clear, sets, clear.above, clear.estimates)
    below = _named(clear, sets, clear.below, -clear.estimates)
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
        f"{printable(result.units)}, {clear.in_words}): {', and '.join(parts)}"
    )


def _named(clear: ClearScores, sets: Sequence[str], own: Truths, sizes: Values) -> str:
    """The largest of some sets with their scores, and how many more there are."""
    indices: Positions = np.flatnonzero(own)
    order = indices[np.argsort(-sizes[indices], kind="stable")]
    words = [f"{sets[q]} ({clear.estimates[q]:.3g})" for q in order[:_MOST_NAMED]]
    if len(order) > _MOST_NAMED:
        words.append(f"{len(order) - _MOST_NAMED:,} more")
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))

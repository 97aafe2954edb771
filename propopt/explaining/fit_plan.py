"""How reference rows are explained together, so that others can be beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

from propopt._typing import Array, Points
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explaining.contributions import (
    ContributionChoice,
    ContributionRule,
    FeatureMetric,
)
from propopt.explaining.defaults import (
    coordinates_of,
    in_words,
    optimum,
    reference_of,
    sizes_of,
)
from propopt.explaining.fitted_rows import FittedParts, FittedRows
from propopt.explaining.interactions import note_on_interactions, with_note
from propopt.explaining.nearest import NearestRows
from propopt.explaining.output_units import complete_explanation
from propopt.explaining.target import LawChoice, TargetRule, target_rule
from propopt.explaining.together import notes_of
from propopt.functions import Function
from propopt.graphs.points import knn_graph
from propopt.graphs.stored import SimilarityGraph
from propopt.losses import (
    GradientMatching,
    Objective,
    PairwiseRobustness,
    PropertyLoss,
    Smoothness,
)
from propopt.quantity import Quantity
from propopt.results.explanation import Explanation, Parameter
from propopt.sampling.laws import Reference
from propopt.tables.schema import ColumnScale


if TYPE_CHECKING:
    from propopt.interactions.result import InteractionScores


NeighborWeights: TypeAlias = Literal["uniform", "gaussian"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FitPlan:
    """All that a fit of reference rows depends on.

    Parameters
    ----------
    function : Function
        The model.
    wrapped : bool
        Whether it was given as a Function.
    table : DataFrame or array
        Where scales come from.
    rows : DataFrame or array (n, D)
        The reference rows.
    scale, units, contributions, metric
        As for :class:`propopt.Explainer`.
    n_neighbors, weights, lengthscale, robustness, smoothness, law, interactions
        So are these.
    seed : int
        For targets that are sampled.
    """

    function: Function
    wrapped: bool
    table: Any
    rows: Any
    scale: ColumnScale
    units: Literal["scaled", "output"]
    contributions: ContributionChoice
    metric: FeatureMetric
    n_neighbors: int
    weights: NeighborWeights
    lengthscale: float | None
    robustness: float | None
    smoothness: Objective | PropertyLoss | None
    law: LawChoice
    interactions: InteractionScores | None
    seed: int

    def fitted(self, progress: bool | None) -> FittedRows:
        """The reference rows, explained together."""
        note = note_on_interactions(self.function, self.rows, self.interactions)
        reference = reference_of(self.function, self.table)
        if self.units == "scaled":
            reference.refuse_equal_rows()
        sizes = sizes_of(self.function, reference, self.scale)
        coordinates = coordinates_of(self.function, self.rows, sizes)
        graph = self._graph(coordinates)
        if self.units == "output":
            return self._in_parts(
                reference,
                sizes,
                graph,
                self._nearest(coordinates, graph),
                note,
                progress,
            )
        rule = target_rule(self.function, reference, sizes, law=self.law, rng=self.seed)
        aim = rule.of(self.rows)
        matching, robust = GradientMatching(aim), PairwiseRobustness(graph)
        smooth, c = _read_smoothness(self.smoothness)
        rest = 1.0 * matching if smooth is None else matching + c * smooth
        best = optimum(rest, robust, self.robustness, progress)
        name = "smoothness" if smooth is None else smooth.name
        nearest = self._nearest(coordinates, graph)
        settings = {
            "gradient": aim.source,
            **self._settings(nearest),
            **with_note(notes_of(aim), note),
        }
        return FittedRows(
            function=self.function,
            wrapped=self.wrapped,
            table=reference,
            rows=self.function.read(self.rows)[0],
            rule=rule,
            nearest=nearest,
            reference=_reference(best, aim, settings, self.function.quantity),
            names=(matching.name, robust.name, name),
            weights=(1.0, best.weights[robust.name], c),
            smooth=smooth,
            settings=settings,
        )

    def _in_parts(
        self,
        reference: Reference,
        sizes: Array,
        graph: SimilarityGraph,
        nearest: NearestRows,
        note: dict[str, Parameter],
        progress: bool | None,
    ) -> FittedParts:
        """The reference rows in parts of the output."""
        points, labels = self.function.read(self.rows)
        parts = ContributionRule(
            function=self.function, reference=reference, law=self.law
        ).settled(points, self.seed)
        known = parts.of(self.rows, self.contributions)
        best = complete_explanation(
            known,
            graph,
            robustness=self.robustness,
            metric=self.metric,
            progress=progress,
        )
        own, pairs = best.weights
        settings = {
            "contributions": known.estimate.source,
            "contributions miss": known.missed,
            "metric": self.metric,
            **self._settings(nearest),
            **with_note(notes_of(known.estimate), note),
        }
        _ = best.attributions  # proved now: all answers depend on them
        return FittedParts(
            function=self.function,
            wrapped=self.wrapped,
            table=reference,
            rows=points,
            rule=TargetRule(function=self.function, sizes=sizes),
            nearest=nearest,
            reference=replace(
                best,
                labels=labels,
                parameters=settings,
                quantity=self.function.quantity,
            ),
            names=(own, pairs, "smoothness"),
            weights=(best.weights[own], best.weights[pairs], 0.0),
            smooth=None,
            settings=settings,
            parts=parts,
            kind=self.contributions,
            metric=self.metric,
        )

    def _graph(self, coordinates: Points) -> SimilarityGraph:
        if len(coordinates) < 2:
            raise InvalidInput(
                "fit: expected at least two reference rows, which are compared with "
                f"each other, got {len(coordinates)}"
            )
        if self.lengthscale is not None and self.weights == "uniform":
            raise InvalidInput("lengthscale: it needs weights='gaussian'")
        return knn_graph(
            coordinates,
            min(read_count(self.n_neighbors, "n_neighbors"), len(coordinates) - 1),
            weights=self.weights,
            lengthscale=self.lengthscale,
        )

    def _nearest(self, coordinates: Points, graph: SimilarityGraph) -> NearestRows:
        return NearestRows(
            coordinates=coordinates,
            n_neighbors=int(graph.parameters["n_neighbors"]),
            lengthscale=graph.parameters.get("lengthscale"),
        )

    def _settings(self, nearest: NearestRows) -> dict[str, Parameter]:
        return {
            "function": repr(self.function),
            "scale": in_words(self.scale),
            **nearest.settings,
            "weight rule": _weight_rule(self.robustness),
        }


def _reference(
    best: Explanation,
    aim: Estimate,
    settings: dict[str, Parameter],
    quantity: Quantity,
) -> Explanation:
    _ = best.attributions  # proved now: all answers depend on them
    return replace(
        best,
        labels=aim.labels,
        units=aim.units,
        evaluations=aim.evaluations,
        details={**best.details, "gradient": aim.values},
        parameters=settings,
        quantity=quantity,
    )


def _read_smoothness(
    given: Objective | PropertyLoss | None,
) -> tuple[Smoothness | None, float]:
    """The loss and its weight; None and 0 where there is none."""
    if given is None:
        return None, 0.0
    terms = Objective.of(given).terms
    weight, loss = terms[0]
    if len(terms) != 1 or not isinstance(loss, Smoothness):
        raise InvalidInput(
            "smoothness: expected a weight times po.Smoothness(graph), got "
            f"{given!r}: a row by itself has a closed form under no other loss; solve "
            "all rows together by po.solve"
        )
    return loss, weight


def _weight_rule(robustness: float | None) -> str:
    return "knee of the curve" if robustness is None else "given"

"""How reference rows are explained together, so that others can be beside them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, final

import numpy as np

from propopt._typing import Array, Points
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explaining.defaults import (
    coordinates_of,
    in_words,
    optimum,
    reference_of,
    sizes_of,
)
from propopt.explaining.fitted_rows import FittedRows
from propopt.explaining.interactions import note_on_interactions, with_note
from propopt.explaining.nearest import NearestRows
from propopt.explaining.target import LawChoice, target_rule
from propopt.functions import Function
from propopt.graphs.points import knn_graph
from propopt.graphs.stored import SimilarityGraph
from propopt.interactions.result import InteractionScores
from propopt.losses import (
    GradientMatching,
    Objective,
    PairwiseRobustness,
    PropertyLoss,
    Smoothness,
)
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.schema import ColumnScale


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
    scale, n_neighbors, weights, lengthscale, robustness, smoothness, law, interactions
        As for :class:`propopt.Explainer`.
    seed : int
        For targets that are sampled.
    """

    function: Function
    wrapped: bool
    table: Any
    rows: Any
    scale: ColumnScale
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
        reference.refuse_equal_rows()
        sizes = sizes_of(self.function, reference, self.scale)
        coordinates = coordinates_of(self.function, self.rows, sizes)
        graph = self._graph(coordinates)
        rule = target_rule(self.function, reference, sizes, law=self.law, rng=self.seed)
        aim = rule.of(self.rows)
        matching, robust = GradientMatching(aim), PairwiseRobustness(graph)
        smooth, c = _read_smoothness(self.smoothness)
        rest = 1.0 * matching if smooth is None else matching + c * smooth
        best = optimum(rest, robust, self.robustness, progress)
        name = "smoothness" if smooth is None else smooth.name
        nearest = self._nearest(coordinates, graph)
        notes = {"notes": "; ".join(aim.notes)} if aim.notes else {}
        settings = with_note({**self._settings(aim, nearest), **notes}, note)
        return FittedRows(
            function=self.function,
            wrapped=self.wrapped,
            table=reference,
            rows=self.function.read(self.rows)[0],
            rule=rule,
            nearest=nearest,
            reference=_reference(best, aim, settings),
            names=(matching.name, robust.name, name),
            weights=(1.0, best.weights[robust.name], c),
            smooth=smooth,
            settings=settings,
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

    def _settings(self, aim: Estimate, nearest: NearestRows) -> dict[str, Parameter]:
        rows = len(nearest.coordinates)
        return {
            "function": repr(self.function),
            "gradient": aim.source,
            "scale": in_words(self.scale),
            "graph": f"{nearest.n_neighbors} nearest of {rows} reference rows",
            "similarities": _similarities(nearest),
            "reference": f"sha256:{_digest(nearest.coordinates)}",
            "weight rule": _weight_rule(self.robustness),
        }


def _reference(
    best: Explanation, aim: Estimate, settings: dict[str, Parameter]
) -> Explanation:
    _ = best.attributions  # proved now: all answers depend on them
    return replace(
        best,
        labels=aim.labels,
        units=aim.units,
        evaluations=aim.evaluations,
        details={**best.details, "gradient": aim.values},
        parameters=settings,
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


def _similarities(nearest: NearestRows) -> str:
    length = nearest.lengthscale
    return "uniform" if length is None else f"gaussian, lengthscale {length:.6g}"


def _weight_rule(robustness: float | None) -> str:
    return "knee of the curve" if robustness is None else "given"


def _digest(coordinates: Array) -> str:
    content = np.ascontiguousarray(coordinates, dtype="<f8").tobytes()
    return hashlib.sha256(content).hexdigest()[:12]

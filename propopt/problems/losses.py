"""Sections of losses, and of graphs.

A new loss is a section here and its place in ``LOSSES``.

Sections on who is similar to whom: what may be said of a graph, and how it is made. A
new graph is a section here and its place in ``PointGraph`` or ``FeatureGraph``.
"""

from __future__ import annotations

from abc import abstractmethod
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, create_model, model_validator
from pydantic_core import PydanticCustomError
from sklearn.gaussian_process.kernels import RBF

from propopt import losses
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.losses import Objective, PropertyLoss, graphs
from propopt.losses.graphs.grids import grid_gaussian_graph
from propopt.problems.sections import (
    Count,
    Finite,
    Label,
    Nonnegative,
    OneOf,
    Positive,
    Section,
    part,
    refuse_settings,
    section_of,
)
from propopt.problems.subject.data import Extent
from propopt.problems.subject.subject import Subject
from propopt.tables.frames import Labels, read_points


# ---- Sections on what is minimised: what may be said of a loss, and how it is made


class GraphSection(Section):
    """A graph of points or of features: the nodes."""

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        """The graph."""
        taken = signature(self.makes).parameters
        known = {"X": X, "n_nodes": n_nodes}
        given = {name: value for name, value in known.items() if name in taken}
        graph: graphs.Graph = self.makes(**given, **self.settings("kind"))
        return graph

    def check(self, n_nodes: int) -> None:
        """Refuse, before any work, what does not fit so many nodes."""


SamePattern: TypeAlias = Annotated[
    bool, Field(description="drop edges between rows that miss other numbers")
]


class GaussianGraph(GraphSection):
    """exp(−‖x − x'‖²/2Λ²)."""

    makes = staticmethod(graphs.gaussian_graph)

    kind: Literal["gaussian"] = "gaussian"
    lengthscale: Positive | None = None
    cutoff: Annotated[float, Field(gt=0, lt=1)] | None = None
    same_pattern: SamePattern = False

    def check(self, n_nodes: int) -> None:
        if self.cutoff is None:
            _require_matrix(n_nodes, "a complete gaussian graph")


class KnnGraph(GraphSection):
    """Nearest neighbours."""

    makes = staticmethod(graphs.knn_graph)

    kind: Literal["knn"]
    n_neighbors: Count
    weights: Literal["uniform", "gaussian"] = "uniform"
    lengthscale: Positive | None = Field(None, description="of gaussian weights")
    same_pattern: SamePattern = False

    @model_validator(mode="after")
    def _lengthscale_of_gaussian(self) -> KnnGraph:
        if self.weights == "uniform":
            refuse_settings(self, "uniform weights", ("lengthscale",))
        return self

    def check(self, n_nodes: int) -> None:
        if self.n_neighbors >= n_nodes:
            raise InvalidInput(
                f"n_neighbors: expected fewer than the {n_nodes} points, got "
                f"{self.n_neighbors}"
            )


class CompleteGraph(GraphSection):
    """All pairs."""

    makes = staticmethod(graphs.complete_graph)

    kind: Literal["complete"]

    def check(self, n_nodes: int) -> None:
        _require_matrix(n_nodes, "a complete graph")


class PixelGraph(GraphSection):
    """Pixels of an image and their neighbours."""

    makes = staticmethod(graphs.pixel_graph)

    kind: Literal["pixel"]
    height: Count
    width: Count

    def check(self, n_nodes: int) -> None:
        if self.height * self.width != n_nodes:
            raise InvalidInput(
                f"graph: expected height × width = {n_nodes} features, got "
                f"{self.height} × {self.width}"
            )


class GroupGraph(GraphSection):
    """Features that carry the same label."""

    makes = staticmethod(graphs.group_graph)

    kind: Literal["group"]
    labels: list[Label]

    def check(self, n_nodes: int) -> None:
        require_one_each("labels", n_nodes, len(self.labels))


_CHAIN: Final = section_of(
    graphs.chain_graph,
    GraphSection,
    "ChainGraph",
    "Neighbours in order.",
    kind=Literal["chain"],
)
POINT_GRAPHS: Final[tuple[type[GraphSection], ...]] = (
    GaussianGraph,
    section_of(
        grid_gaussian_graph,
        GraphSection,
        "GaussianGridGraph",
        "The same for all points of a grid, not stored: up to a million points.",
        kind=Literal["grid_gaussian"],
        lengthscale=Positive | None,
    ),
    KnnGraph,
    section_of(
        graphs.cosine_graph,
        GraphSection,
        "CosineGraph",
        "Nearest directions, by the cosine: of documents those that share rarer words.",
        kind=Literal["cosine"],
        n_neighbors=Count,
    ),
    section_of(
        graphs.threshold_graph,
        GraphSection,
        "ThresholdGraph",
        "Pairs with ‖x − x'‖² ≤ threshold.",
        kind=Literal["threshold"],
        threshold=Nonnegative,
        same_pattern=SamePattern,
    ),
    CompleteGraph,
    _CHAIN,
)
FEATURE_GRAPHS: Final[tuple[type[GraphSection], ...]] = (
    _CHAIN,
    PixelGraph,
    section_of(
        graphs.correlation_graph,
        GraphSection,
        "CorrelationGraph",
        "|Correlation| of columns.",
        kind=Literal["correlation"],
    ),
    GroupGraph,
    CompleteGraph,
)
PointGraph: TypeAlias = Annotated[GraphSection, OneOf("kind", POINT_GRAPHS)]
FeatureGraph: TypeAlias = Annotated[GraphSection, OneOf("kind", FEATURE_GRAPHS)]


def require_one_each(label: str, n_features: int, count: int) -> None:
    """Refuse a list of another length than there are features."""
    if count != n_features:
        raise InvalidInput(
            f"{label}: expected {n_features}, one for each feature, got {count}"
        )


def _require_matrix(n_nodes: int, label: str) -> None:
    require_memory(24.0 * n_nodes**2, label, "explain fewer points")


class LossSection(Section):
    """A property with its weight; ``name: 0.5`` is short for ``{weight: 0.5}``."""

    name: ClassVar[str]
    of_function: ClassVar[bool] = False
    """It needs the function, so that a model must be fitted for it."""
    of_features: ClassVar[bool] = False
    """It is about features: of documents the words, which the model finds."""
    counts_points: ClassVar[bool] = True
    """It says how many points there are."""

    weight: Nonnegative = 1.0

    @abstractmethod
    def build(self, subject: Subject) -> PropertyLoss:
        """The loss of explanations of this subject."""

    def check(self, extent: Extent) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""


class GradientMatchingLoss(LossSection):
    """Σ ‖w − ∇f‖²."""

    name = "gradient_matching"
    of_function = True

    norm: Literal["l2", "l1"] = "l2"

    def build(self, subject: Subject) -> PropertyLoss:
        return losses.GradientMatching(subject.estimate(subject.points), self.norm)


class FunctionMatchingLoss(LossSection):
    """Σ (f(x) − wᵀx)², or from a reference point."""

    name = "function_matching"
    of_function = True

    reference: list[Finite] | None = None

    def build(self, subject: Subject) -> PropertyLoss:
        X, f = subject.points, subject.function
        if self.reference is None:
            return losses.FunctionMatching(X, f.value(X), quantity=f.quantity)
        names = Labels(features=read_points(X, "X")[1].features)
        value = f.value(names.table(np.array([self.reference])))
        reference = self.reference, float(value[0])
        return losses.FunctionMatching(X, f.value(X), reference, quantity=f.quantity)

    def check(self, extent: Extent) -> None:
        if self.reference is not None:
            require_one_each("reference", extent.n_columns, len(self.reference))


class _OverPoints(LossSection):
    """A loss of similar points."""

    graph: PointGraph = GaussianGraph()

    def _graph(self, subject: Subject) -> graphs.Graph:
        return self.graph.build(subject.coordinates, len(subject.points))

    def check(self, extent: Extent) -> None:
        self.graph.check(extent.n_points)


class PairwiseRobustnessLoss(_OverPoints):
    """Σ ‖w_n − w_n'‖² S_nn'."""

    name = "pairwise_robustness"

    def build(self, subject: Subject) -> PropertyLoss:
        return losses.PairwiseRobustness(self._graph(subject))


class SharedRobustnessLoss(_OverPoints):
    """Σ S_nn' Σ (w_nj − w_n'j)² over the words j that both documents have."""

    name = "shared_robustness"
    of_features = True

    def build(self, subject: Subject) -> PropertyLoss:
        return losses.SharedRobustness(self._graph(subject), subject.table)


class KernelRobustnessLoss(LossSection):
    """2 tr(Wᵀ Σ⁻¹ W) for a gaussian kernel."""

    name = "kernel_robustness"

    lengthscale: Positive
    jitter: Nonnegative = 1e-8
    mean: Literal["per_feature", "none"] = "per_feature"

    def build(self, subject: Subject) -> PropertyLoss:
        coordinates = np.asarray(subject.coordinates)
        if np.isnan(coordinates).any():
            raise InvalidInput(
                "numbers are missing, and no kernel is positive definite for distances "
                "between such rows; take pairwise_robustness, or an imputed table"
            )
        kernel = RBF(self.lengthscale)(coordinates)
        kernel[np.diag_indices_from(kernel)] += self.jitter
        return losses.KernelRobustness(kernel, mean=self.mean)

    def check(self, extent: Extent) -> None:
        n_bytes = 24.0 * extent.n_points**2
        require_memory(n_bytes, "a kernel of all points", "explain fewer points")


class MaxDifferenceRobustnessLoss(_OverPoints):
    """max ‖w_n − w_n'‖², or its sum over points."""

    name = "max_difference_robustness"

    graph: PointGraph
    aggregate: Literal["max", "sum"] = "max"
    norm: Literal["l2", "l1", "linf"] = "l2"

    def build(self, subject: Subject) -> PropertyLoss:
        graph = self._graph(subject)
        return losses.MaxDifferenceRobustness(graph, self.aggregate, self.norm)


class SmoothnessLoss(LossSection):
    """Σ (w_nd − w_nd')² T_dd'."""

    name = "smoothness"
    of_features = True
    counts_points = False

    graph: FeatureGraph

    def build(self, subject: Subject) -> PropertyLoss:
        return losses.Smoothness(self.graph.build(subject.table, subject.n_features))

    def check(self, extent: Extent) -> None:
        self.graph.check(extent.n_features)


class SparsityLoss(LossSection):
    """Σ ‖w‖₁."""

    name = "sparsity"
    counts_points = False

    def build(self, subject: Subject) -> PropertyLoss:
        del subject
        return losses.Sparsity()


LOSSES: Final[tuple[type[LossSection], ...]] = (
    GradientMatchingLoss,
    FunctionMatchingLoss,
    PairwiseRobustnessLoss,
    SharedRobustnessLoss,
    KernelRobustnessLoss,
    MaxDifferenceRobustnessLoss,
    SmoothnessLoss,
    SparsityLoss,
)


class _AnyLosses(Section):
    """The objective: one entry per property."""

    @model_validator(mode="after")
    def _not_empty(self) -> _AnyLosses:
        if not self.losses:
            raise PydanticCustomError("no_loss", "expected at least one loss, got none")
        return self

    @property
    def losses(self) -> dict[str, LossSection]:
        """The losses that are there, in the order of ``LOSSES``."""
        return {
            n: getattr(self, n) for n in type(self).model_fields if getattr(self, n)
        }

    def build(self, subject: Subject) -> Objective:
        """All of them weighed, those that a sweep limits among them."""
        terms = []
        for name, loss in self.losses.items():
            with part("objective", name):
                terms.append((loss.weight, loss.build(subject)))
        with part("objective"):
            return Objective(tuple(terms))

    def check(self, extent: Extent) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""
        for name, loss in self.losses.items():
            with part("objective", name):
                loss.check(extent)


def _optional(loss: type[LossSection]) -> Any:
    """The loss under its name, its weight alone, or nothing."""
    spelled = BeforeValidator(_spelled_out, json_schema_input_type=loss | Nonnegative)
    return Annotated[loss | None, spelled], None


def _spelled_out(value: Any) -> Any:
    """``{weight: value}`` for a value that is a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"weight": value}
    if not isinstance(value, dict):
        raise PydanticCustomError("loss_type", "expected a weight or a mapping")
    return value


if TYPE_CHECKING:
    Losses = _AnyLosses
else:
    Losses = create_model(
        "Losses",
        __base__=_AnyLosses,
        __doc__=_AnyLosses.__doc__,
        **{loss.name: _optional(loss) for loss in LOSSES},
    )

"""Sections on who is similar to whom: what may be said of a graph, and how it is made.

A new graph is a section here and its place in ``POINT_GRAPHS`` or ``FEATURE_GRAPHS``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, model_validator

from propopt import graphs
from propopt.errors import InvalidInput
from propopt.graphs.grids import grid_gaussian_graph
from propopt.memory import require_memory
from propopt.problems.section import (
    Count,
    Label,
    Nonnegative,
    Positive,
    Section,
    one_of,
    refuse_settings,
)


class GraphSection(Section):
    """A graph of points or of features: the nodes."""

    @abstractmethod
    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        """The graph.

        Parameters
        ----------
        X : array or DataFrame
            For a graph of points where these lie, (N, M); for one of features the
            table, (N, D).
        n_nodes : int
            So many points or features.
        """

    def check(self, n_nodes: int) -> None:
        """Refuse, before any work, what does not fit so many nodes.

        Raises
        ------
        InvalidInput, Refused
            If lengths, shapes or numbers of neighbours do not fit, or memory does not
            suffice.
        """


SamePattern: TypeAlias = Annotated[
    bool, Field(description="drop edges between rows that miss other numbers")
]


class GaussianGraph(GraphSection):
    """exp(−‖x − x'‖²/2Λ²)."""

    kind: Literal["gaussian"] = "gaussian"
    lengthscale: Positive | None = None
    cutoff: Annotated[float, Field(gt=0, lt=1)] | None = None
    same_pattern: SamePattern = False

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del n_nodes
        return graphs.gaussian_graph(
            X, self.lengthscale, cutoff=self.cutoff, same_pattern=self.same_pattern
        )

    def check(self, n_nodes: int) -> None:
        if self.cutoff is None:
            _require_matrix(n_nodes, "a complete gaussian graph")


class GaussianGridGraph(GraphSection):
    """The same for all points of a grid, not stored: up to a million points."""

    kind: Literal["grid_gaussian"]
    lengthscale: Positive | None = None

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del n_nodes
        return grid_gaussian_graph(X, self.lengthscale)


class KnnGraph(GraphSection):
    """Nearest neighbours."""

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

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del n_nodes
        return graphs.knn_graph(
            X,
            self.n_neighbors,
            weights=self.weights,
            lengthscale=self.lengthscale,
            same_pattern=self.same_pattern,
        )

    def check(self, n_nodes: int) -> None:
        if self.n_neighbors >= n_nodes:
            raise InvalidInput(
                f"n_neighbors: expected fewer than the {n_nodes} points, got "
                f"{self.n_neighbors}"
            )


class CosineGraph(GraphSection):
    """Nearest directions, by the cosine: of documents those that share rarer words."""

    kind: Literal["cosine"]
    n_neighbors: Count = 8

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del n_nodes
        return graphs.cosine_graph(X, self.n_neighbors)


class ThresholdGraph(GraphSection):
    """Pairs with ‖x − x'‖² ≤ threshold."""

    kind: Literal["threshold"]
    threshold: Nonnegative
    same_pattern: SamePattern = False

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del n_nodes
        return graphs.threshold_graph(X, self.threshold, same_pattern=self.same_pattern)


class CompleteGraph(GraphSection):
    """All pairs."""

    kind: Literal["complete"]

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del X
        return graphs.complete_graph(n_nodes)

    def check(self, n_nodes: int) -> None:
        _require_matrix(n_nodes, "a complete graph")


class ChainGraph(GraphSection):
    """Neighbours in order."""

    kind: Literal["chain"]

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del X
        return graphs.chain_graph(n_nodes)


class PixelGraph(GraphSection):
    """Pixels of an image and their neighbours."""

    kind: Literal["pixel"]
    height: Count
    width: Count

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del X, n_nodes
        return graphs.pixel_graph(self.height, self.width)

    def check(self, n_nodes: int) -> None:
        if self.height * self.width != n_nodes:
            raise InvalidInput(
                f"graph: expected height × width = {n_nodes} features, got "
                f"{self.height} × {self.width}"
            )


class CorrelationGraph(GraphSection):
    """|Correlation| of columns."""

    kind: Literal["correlation"]

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del n_nodes
        return graphs.correlation_graph(X)


class GroupGraph(GraphSection):
    """Features that carry the same label."""

    kind: Literal["group"]
    labels: list[Label]

    def build(self, X: Any, n_nodes: int) -> graphs.Graph:
        del X, n_nodes
        return graphs.group_graph(self.labels)

    def check(self, n_nodes: int) -> None:
        require_one_each("labels", n_nodes, len(self.labels))


POINT_GRAPHS: Final = (
    GaussianGraph,
    GaussianGridGraph,
    KnnGraph,
    CosineGraph,
    ThresholdGraph,
    CompleteGraph,
    ChainGraph,
)
FEATURE_GRAPHS: Final = (
    ChainGraph,
    PixelGraph,
    CorrelationGraph,
    GroupGraph,
    CompleteGraph,
)
if TYPE_CHECKING:
    PointGraph: TypeAlias = GraphSection
    FeatureGraph: TypeAlias = GraphSection
else:
    PointGraph = one_of(POINT_GRAPHS, "kind")
    FeatureGraph = one_of(FEATURE_GRAPHS, "kind")


def require_one_each(what: str, n_features: int, count: int) -> None:
    """Refuse a list of another length than there are features."""
    if count != n_features:
        raise InvalidInput(
            f"{what}: expected {n_features}, one for each feature, got {count}"
        )


def _require_matrix(n_nodes: int, what: str) -> None:
    require_memory(24.0 * n_nodes**2, what, "explain fewer points")

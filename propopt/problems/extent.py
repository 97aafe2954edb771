"""How large a problem is, and what does not fit its size; nothing is fitted for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from propopt.errors import InvalidInput
from propopt.graphs.grid_points import grid_size
from propopt.memory import require_memory
from propopt.problems import inductive, losses
from propopt.problems.explained import Data
from propopt.problems.schema import ProblemSchema
from propopt.problems.section import MOST_NUMBERS
from propopt.problems.source import Location, Source


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Sizes, known before any number is.

    Parameters
    ----------
    n_points : int
        Points to explain, N.
    n_known : int
        Points that are not explained; N where all are.
    n_columns : int
        Of the table.
    n_features : int
        Attributions of each point: columns that encode one feature count once.
    """

    n_points: int
    n_known: int
    n_columns: int
    n_features: int

    @classmethod
    def of(
        cls, data: Data, n_rows: int, n_columns: int, n_features: int | None = None
    ) -> Extent:
        """Of so many rows, perhaps split into those explained and others."""
        return cls(
            n_points=data.explain or n_rows,
            n_known=n_rows - (data.explain or 0),
            n_columns=n_columns,
            n_features=n_features or n_columns,
        )


def extent_of_formula(data: Data, source: Source) -> Extent:
    """Of a grid or of random points, without making them.

    Raises
    ------
    ProblemFileError
        If there are too many.
    """
    if data.uniform is not None:
        place, rows, columns = "uniform", data.uniform.points, data.uniform.dimensions
    else:
        assert data.grid is not None
        place, columns = "grid", data.grid.dimensions
        with source.blaming("data", "grid"):
            rows = grid_size(data.grid.per_dimension, columns, data.grid.first)
    if rows * columns > MOST_NUMBERS:
        raise source.error(
            ("data", place),
            f"expected at most {MOST_NUMBERS:,} numbers (points × dimensions), got "
            f"{rows:,} × {columns:,}",
        )
    check_explain(data, rows, source)
    return Extent.of(data, rows, columns)


def check_explain(data: Data, n_rows: int, source: Source) -> None:
    """Refuse to explain so many rows that none is left."""
    if data.explain is not None and data.explain >= n_rows:
        raise source.error(
            ("data", "explain"),
            f"expected fewer than the {n_rows} rows there are, so that some are left "
            f"to fit on, got {data.explain}",
        )


def check_extent(schema: ProblemSchema, extent: Extent, source: Source) -> None:
    """Refuse lengths, shapes and numbers of neighbours that do not fit the points.

    Raises
    ------
    ProblemFileError
        Which names the loss.
    """
    for name, loss in schema.objective.given.items():
        with source.blaming("objective", name):
            _check_loss(loss, extent)
            of_features = isinstance(loss, losses.SmoothnessLoss)
            n_nodes = extent.n_features if of_features else extent.n_points
            _check_graph(getattr(loss, "graph", None), n_nodes)
    if schema.setting == "inductive":
        for number, section in enumerate(schema.inductive.inducing):
            _check_inducing(section, extent, ("inductive", "inducing", number), source)


def _check_loss(loss: losses.Loss, extent: Extent) -> None:
    match loss:
        case losses.FunctionMatchingLoss(reference=list(given)):
            _require("reference", extent.n_columns, len(given))
        case losses.KernelRobustnessLoss():
            _require_matrix(extent.n_points, "a kernel of all points")


def _check_graph(graph: Any, n_nodes: int) -> None:
    match graph:
        case losses.KnnGraph(n_neighbors=count) if count >= n_nodes:
            raise InvalidInput(
                f"n_neighbors: expected fewer than the {n_nodes} points, got {count}"
            )
        case losses.PixelGraph() if graph.height * graph.width != n_nodes:
            raise InvalidInput(
                f"graph: expected height × width = {n_nodes} features, got "
                f"{graph.height} × {graph.width}"
            )
        case losses.GroupGraph():
            _require("labels", n_nodes, len(graph.labels))
        case losses.GaussianGraph(cutoff=None):
            _require_matrix(n_nodes, "a complete gaussian graph")
        case losses.CompleteGraph():
            _require_matrix(n_nodes, "a complete graph")


def _require(what: str, expected: int, came: int) -> None:
    if came != expected:
        raise InvalidInput(
            f"{what}: expected {expected}, one for each feature, got {came}"
        )


def _require_matrix(n_nodes: int, what: str) -> None:
    require_memory(24.0 * n_nodes**2, what, "explain fewer points")


def _check_inducing(
    section: inductive.AnyInducing, extent: Extent, place: Location, source: Source
) -> None:
    if isinstance(section, inductive.AllInputs):
        return
    if isinstance(section, inductive.GivenRule):
        came = next(
            (len(x) for x in section.inputs if len(x) != extent.n_columns), None
        )
        if came is not None:
            expected = f"expected {extent.n_columns} features as in X, got {came}"
            raise source.error(place, f"inducing: {expected}")
        return
    for number, count in enumerate(section.counts):
        if count > extent.n_known:
            raise source.error(
                (*place, "counts", number),
                f"expected at most {extent.n_known}, as many observations as there "
                f"are, got {count}",
            )

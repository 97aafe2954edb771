"""Sections of losses, and of graphs.

A new loss is a section here and its place in ``LOSSES``.

Sections on who is similar to whom: what may be said of a graph, and how it is made. A
new graph is a section here and its place in ``PointGraph`` or ``FeatureGraph``.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from inspect import signature
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
)

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

    @model_validator(mode="after")
    def _lengthscale_of_gaussian(self) -> Self:
        if getattr(self, "weights", None) == "uniform":
            refuse_settings(self, "uniform weights", ("lengthscale",))
        return self


def _graph(kind: str, made: Any, check: Any = None, **said: Any) -> Any:
    """A section of a graph, of the settings of what makes it, and what it refuses."""
    name = "".join(map(str.capitalize, kind.split("_")))
    own = (Literal[kind], None, kind)
    section: Any = section_of(
        made, GraphSection, f"{name}Graph", without=_OF_NODES, kind=own, **said
    )
    if check is not None:
        section.check = check
    return section


_OF_NODES: Final = ("X", "n_nodes")


def _check_pairs(section: Any, n_nodes: int) -> None:
    if getattr(section, "cutoff", None) is None:
        gaussian = "gaussian " * (section.kind == "gaussian")
        require_memory(24.0 * n_nodes**2, f"a complete {gaussian}graph", _FEWER)


_FEWER: Final = "explain fewer points"


def _check_neighbors(section: Any, n_nodes: int) -> None:
    if section.n_neighbors >= n_nodes:
        raise InvalidInput(
            f"n_neighbors: expected fewer than the {n_nodes} points, got "
            f"{section.n_neighbors}"
        )


def _check_pixels(section: Any, n_nodes: int) -> None:
    if section.height * section.width != n_nodes:
        raise InvalidInput(
            f"graph: expected height × width = {n_nodes} features, got "
            f"{section.height} × {section.width}"
        )


def _check_labels(section: Any, n_nodes: int) -> None:
    require_one_each("labels", n_nodes, len(section.labels))


_CHAIN: Final = _graph("chain", graphs.chain_graph)
_COMPLETE: Final = _graph("complete", graphs.complete_graph, _check_pairs)
_GAUSSIAN: Final = _graph(
    "gaussian",
    graphs.gaussian_graph,
    _check_pairs,
    cutoff=Annotated[float, Field(gt=0, lt=1)] | None,
)
POINT_GRAPHS: Final[tuple[type[GraphSection], ...]] = (
    _GAUSSIAN,
    _graph("grid_gaussian", grid_gaussian_graph),
    _graph("knn", graphs.knn_graph, _check_neighbors),
    _graph("cosine", graphs.cosine_graph),
    _graph("threshold", graphs.threshold_graph, threshold=Nonnegative),
    _COMPLETE,
    _CHAIN,
)
FEATURE_GRAPHS: Final[tuple[type[GraphSection], ...]] = (
    _CHAIN,
    _graph("pixel", graphs.pixel_graph, _check_pixels),
    _graph("correlation", graphs.correlation_graph),
    _graph("group", graphs.group_graph, _check_labels, labels=list[Label]),
    _COMPLETE,
)
PointGraph: TypeAlias = Annotated[GraphSection, OneOf("kind", POINT_GRAPHS)]
FeatureGraph: TypeAlias = Annotated[GraphSection, OneOf("kind", FEATURE_GRAPHS)]


def require_one_each(label: str, n_features: int, count: int) -> None:
    """Refuse a list of another length than there are features."""
    if count != n_features:
        raise InvalidInput(
            f"{label}: expected {n_features}, one for each feature, got {count}"
        )


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


@partial(section_of, losses.GradientMatching, without=("G", "units", "name"))
class GradientMatchingLoss(LossSection):
    """Σ ‖w − ∇f‖²."""

    name = "gradient_matching"
    of_function = True

    def build(self, subject: Subject) -> PropertyLoss:
        slopes = subject.estimate(subject.points)
        return losses.GradientMatching(slopes, **self.settings("weight"))


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

    graph: PointGraph = _GAUSSIAN.model_validate({"kind": "gaussian"})

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


@partial(section_of, losses.KernelRobustness, without=("kernel_matrix", "name"))
class KernelRobustnessLoss(LossSection):
    """2 tr(Wᵀ Σ⁻¹ W) for a gaussian kernel."""

    name = "kernel_robustness"

    lengthscale: Positive
    jitter: Nonnegative = 1e-8

    def build(self, subject: Subject) -> PropertyLoss:
        coordinates = np.asarray(subject.coordinates)
        if np.isnan(coordinates).any():
            raise InvalidInput(
                "numbers are missing, and no kernel is positive definite for distances "
                "between such rows; take pairwise_robustness, or an imputed table"
            )
        kernel = RBF(self.lengthscale)(coordinates)
        kernel[np.diag_indices_from(kernel)] += self.jitter
        own = self.settings("weight", "lengthscale", "jitter")
        return losses.KernelRobustness(kernel, **own)

    def check(self, extent: Extent) -> None:
        n_bytes = 24.0 * extent.n_points**2
        require_memory(n_bytes, "a kernel of all points", _FEWER)


@partial(section_of, losses.MaxDifferenceRobustness, graph=PointGraph, without=["name"])
class MaxDifferenceRobustnessLoss(_OverPoints):
    """max ‖w_n − w_n'‖², or its sum over points."""

    name = "max_difference_robustness"

    def build(self, subject: Subject) -> PropertyLoss:
        own = self.settings("weight", "graph")
        return losses.MaxDifferenceRobustness(self._graph(subject), **own)


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

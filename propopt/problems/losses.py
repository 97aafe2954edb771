"""Sections on what is minimised: what may be said of a loss, and how it is made.

A new loss is a section here and its place in ``LOSSES``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import numpy as np
from pydantic import BeforeValidator, create_model, model_validator
from pydantic_core import PydanticCustomError
from sklearn.gaussian_process.kernels import RBF

from propopt import losses
from propopt.errors import InvalidInput
from propopt.losses import Objective, PropertyLoss
from propopt.memory import require_memory
from propopt.problems.extent import Extent
from propopt.problems.graphs import (
    FeatureGraph,
    GaussianGraph,
    PointGraph,
    require_one_each,
)
from propopt.problems.parts import part
from propopt.problems.section import Finite, Nonnegative, Positive, Section
from propopt.tables.names import Labels, read_points


if TYPE_CHECKING:
    from propopt.problems.subject.subject import Subject


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
        """Refuse, before any work, what does not fit the sizes of the subject.

        Raises
        ------
        InvalidInput, Refused
            If lengths do not fit, or memory does not suffice.
        """


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


class PairwiseRobustnessLoss(LossSection):
    """Σ ‖w_n − w_n'‖² S_nn'."""

    name = "pairwise_robustness"

    graph: PointGraph = GaussianGraph()

    def build(self, subject: Subject) -> PropertyLoss:
        X = subject.coordinates
        return losses.PairwiseRobustness(self.graph.build(X, len(X)))

    def check(self, extent: Extent) -> None:
        self.graph.check(extent.n_points)


class SharedRobustnessLoss(LossSection):
    """Σ S_nn' Σ (w_nj − w_n'j)² over the words j that both documents have."""

    name = "shared_robustness"
    of_features = True

    graph: PointGraph = GaussianGraph()

    def build(self, subject: Subject) -> PropertyLoss:
        X = subject.coordinates
        return losses.SharedRobustness(self.graph.build(X, len(X)), subject.table)

    def check(self, extent: Extent) -> None:
        self.graph.check(extent.n_points)


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


class MaxDifferenceRobustnessLoss(LossSection):
    """max ‖w_n − w_n'‖², or its sum over points."""

    name = "max_difference_robustness"

    graph: PointGraph
    aggregate: Literal["max", "sum"] = "max"
    norm: Literal["l2", "l1", "linf"] = "l2"

    def build(self, subject: Subject) -> PropertyLoss:
        X = subject.coordinates
        graph = self.graph.build(X, len(X))
        return losses.MaxDifferenceRobustness(graph, self.aggregate, self.norm)

    def check(self, extent: Extent) -> None:
        self.graph.check(extent.n_points)


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

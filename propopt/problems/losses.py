"""Sections on what is minimised: losses and their graphs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from propopt.problems.section import (
    Count,
    Finite,
    Label,
    Nonnegative,
    Positive,
    Section,
    refuse_settings,
)


# ---- graphs


class GaussianGraph(Section):
    """exp(−‖x − x'‖²/2Λ²)."""

    kind: Literal["gaussian"] = "gaussian"
    lengthscale: Positive | None = None
    cutoff: Annotated[float, Field(gt=0, lt=1)] | None = None


class GridGaussianGraph(Section):
    """The same for all points of a grid, not stored: up to a million points."""

    kind: Literal["grid_gaussian"]
    lengthscale: Positive | None = None


class KnnGraph(Section):
    """Nearest neighbours."""

    kind: Literal["knn"]
    n_neighbors: Count
    weights: Literal["uniform", "gaussian"] = "uniform"
    lengthscale: Positive | None = Field(None, description="of gaussian weights")

    @model_validator(mode="after")
    def _lengthscale_of_gaussian(self) -> KnnGraph:
        if self.weights == "uniform":
            refuse_settings(self, "uniform weights", ("lengthscale",))
        return self


class ThresholdGraph(Section):
    """Pairs with ‖x − x'‖² ≤ threshold."""

    kind: Literal["threshold"]
    threshold: Nonnegative


class CompleteGraph(Section):
    """All pairs."""

    kind: Literal["complete"]


class ChainGraph(Section):
    """Neighbours in order."""

    kind: Literal["chain"]


class PixelGraph(Section):
    """Pixels of an image and their neighbours."""

    kind: Literal["pixel"]
    height: Count
    width: Count


class CorrelationGraph(Section):
    """|Correlation| of columns."""

    kind: Literal["correlation"]


class GroupGraph(Section):
    """Features that carry the same label."""

    kind: Literal["group"]
    labels: list[Label]


PointGraph: TypeAlias = Annotated[
    GaussianGraph
    | GridGaussianGraph
    | KnnGraph
    | ThresholdGraph
    | CompleteGraph
    | ChainGraph,
    Field(discriminator="kind"),
]
FeatureGraph: TypeAlias = Annotated[
    ChainGraph | PixelGraph | CorrelationGraph | GroupGraph | CompleteGraph,
    Field(discriminator="kind"),
]


# ---- losses: ``name: 0.5`` is short for ``name: {weight: 0.5}``


class Loss(Section):
    """A property with its weight."""

    weight: Nonnegative = 1.0


class GradientMatchingLoss(Loss):
    """Σ ‖w − ∇f‖²."""

    norm: Literal["l2", "l1"] = "l2"


class FunctionMatchingLoss(Loss):
    """Σ (f(x) − wᵀx)², or from a reference point."""

    reference: list[Finite] | None = None


class PairwiseRobustnessLoss(Loss):
    """Σ ‖w_n − w_n'‖² S_nn'."""

    graph: PointGraph = GaussianGraph()


class KernelRobustnessLoss(Loss):
    """2 tr(Wᵀ Σ⁻¹ W) for a gaussian kernel."""

    lengthscale: Positive
    jitter: Nonnegative = 1e-8
    mean: Literal["per_feature", "none"] = "per_feature"


class MaxDifferenceRobustnessLoss(Loss):
    """max ‖w_n − w_n'‖², or its sum over points."""

    graph: PointGraph
    aggregate: Literal["max", "sum"] = "max"
    norm: Literal["l2", "l1", "linf"] = "l2"


class SmoothnessLoss(Loss):
    """Σ (w_nd − w_nd')² T_dd'."""

    graph: FeatureGraph


class SparsityLoss(Loss):
    """Σ ‖w‖₁."""


def _or_weight(loss: type[Loss]) -> BeforeValidator:
    return BeforeValidator(_spelled_out, json_schema_input_type=loss | Nonnegative)


def _spelled_out(value: Any) -> Any:
    """``{weight: value}`` for a value that is a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"weight": value}
    if not isinstance(value, dict):
        raise PydanticCustomError("loss_type", "expected a weight or a mapping")
    return value


class Losses(Section):
    """The objective: one entry per property."""

    gradient_matching: Annotated[
        GradientMatchingLoss | None, _or_weight(GradientMatchingLoss)
    ] = None
    function_matching: Annotated[
        FunctionMatchingLoss | None, _or_weight(FunctionMatchingLoss)
    ] = None
    pairwise_robustness: Annotated[
        PairwiseRobustnessLoss | None, _or_weight(PairwiseRobustnessLoss)
    ] = None
    kernel_robustness: Annotated[
        KernelRobustnessLoss | None, _or_weight(KernelRobustnessLoss)
    ] = None
    max_difference_robustness: Annotated[
        MaxDifferenceRobustnessLoss | None, _or_weight(MaxDifferenceRobustnessLoss)
    ] = None
    smoothness: Annotated[SmoothnessLoss | None, _or_weight(SmoothnessLoss)] = None
    sparsity: Annotated[SparsityLoss | None, _or_weight(SparsityLoss)] = None

    @model_validator(mode="after")
    def _not_empty(self) -> Losses:
        if not self.given:
            raise PydanticCustomError("no_loss", "expected at least one loss, got none")
        return self

    @property
    def given(self) -> dict[str, Loss]:
        """The losses that the file names, in the order of this class."""
        return {
            n: getattr(self, n) for n in type(self).model_fields if getattr(self, n)
        }

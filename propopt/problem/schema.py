"""What a problem file may say: one strict model per section."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A mapping whose keys are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for key in data:
                if key not in cls.model_fields:
                    raise _unknown_key(str(key), list(cls.model_fields))
        return data


def _unknown_key(key: str, known: list[str]) -> PydanticCustomError:
    near = get_close_matches(key, known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return PydanticCustomError(
        "unknown_key",
        "unknown key{hint}; known here: {known}",
        {"key": key, "hint": hint, "known": ", ".join(known)},
    )


Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Nonnegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=1)]
Seed: TypeAlias = Annotated[int, Field(ge=0)]


# ---- data and function


class Grid(Section):
    """A product grid of points."""

    low: Finite
    high: Finite
    per_dimension: Count
    dimensions: Count
    first: Count | None = None


class Data(Section):
    """Where the points come from: exactly one of grid, sklearn and csv."""

    grid: Grid | None = None
    sklearn: Literal["breast_cancer", "diabetes", "digits", "iris", "wine"] | None = (
        None
    )
    csv: str | None = None
    target: str | None = Field(
        None, description="column of the CSV that the model learns"
    )
    explain: Count | None = Field(
        None, description="rows to explain; the model is then fitted on the others"
    )
    standardize: bool = Field(
        False, description="scale columns to mean 0 and variance 1 of the fitted rows"
    )

    @model_validator(mode="after")
    def _one_source(self) -> Data:
        given = [n for n in ("grid", "sklearn", "csv") if getattr(self, n) is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_source",
                "give exactly one of grid, sklearn and csv, not {given}",
                {"given": " and ".join(given) or "none"},
            )
        if self.csv is not None and self.target is None:
            raise PydanticCustomError("target", "a csv needs target: COLUMN", {})
        return self


class Formula(Section):
    """One of the paper's functions, a sum over the features."""

    name: Literal[
        "power",
        "interactions",
        "sine",
        "sine_of_exponential",
        "linear_plus_sine_of_exponential",
        "linear_plus_sine",
        "quadratic_plus_sine",
        "exponential",
    ]
    degree: Count | None = Field(None, description="of power only")

    @model_validator(mode="after")
    def _degree_of_power(self) -> Formula:
        if (self.name == "power") != (self.degree is not None):
            raise PydanticCustomError(
                "degree", "power, and only power, needs a degree", {}
            )
        return self


class Model(Section):
    """A scikit-learn model, behind a standard scaler."""

    kind: Literal["linear", "logistic", "mlp"]
    task: Literal["classification", "regression"] | None = Field(
        None, description="of mlp; known for scikit-learn's tables"
    )
    hidden: list[Count] = Field([32, 32], description="of mlp")
    activation: Literal["tanh", "relu", "logistic", "identity"] = "tanh"
    regularization: Nonnegative = Field(
        1e-2, description="of mlp (alpha) and logistic (1/C)"
    )
    output: Literal["auto", "value", "probability", "log_odds", "margin"] = "auto"
    target_class: str | int | None = Field(None, description="label to explain")


# ---- graphs


class GaussianGraph(Section):
    """exp(−‖x − x'‖²/2Λ²)."""

    kind: Literal["gaussian"] = "gaussian"
    lengthscale: Positive | None = None
    cutoff: Annotated[float, Field(gt=0, lt=1)] | None = None


class KnnGraph(Section):
    """Nearest neighbours."""

    kind: Literal["knn"]
    n_neighbors: Count
    weights: Literal["uniform", "gaussian"] = "uniform"
    lengthscale: Positive | None = None


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
    labels: list[str | int]


PointGraph: TypeAlias = Annotated[
    GaussianGraph | KnnGraph | ThresholdGraph | CompleteGraph | ChainGraph,
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


def _weight_only(value: Any) -> Any:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return {"weight": value} if plain else value


_SHORT = BeforeValidator(_weight_only, json_schema_input_type=dict[str, Any] | float)


class Losses(Section):
    """The objective: one entry per property."""

    gradient_matching: Annotated[GradientMatchingLoss, _SHORT] | None = None
    function_matching: Annotated[FunctionMatchingLoss, _SHORT] | None = None
    pairwise_robustness: Annotated[PairwiseRobustnessLoss, _SHORT] | None = None
    kernel_robustness: Annotated[KernelRobustnessLoss, _SHORT] | None = None
    max_difference_robustness: Annotated[MaxDifferenceRobustnessLoss, _SHORT] | None = (
        None
    )
    smoothness: Annotated[SmoothnessLoss, _SHORT] | None = None
    sparsity: Annotated[SparsityLoss, _SHORT] | None = None

    @property
    def given(self) -> dict[str, Loss]:
        """The losses that the file names, in the order of this class."""
        return {
            n: getattr(self, n) for n in type(self).model_fields if getattr(self, n)
        }


# ---- sweep and baselines


class WeightRange(Section):
    """Weights from low to high."""

    low: Nonnegative
    high: Positive
    points: Count
    scale: Literal["log", "linear"] = "log"

    @model_validator(mode="after")
    def _log_needs_positive(self) -> WeightRange:
        if self.scale == "log" and self.low == 0:
            raise PydanticCustomError(
                "log_low", "a log scale needs low > 0, or use scale: linear", {}
            )
        return self

    @property
    def values(self) -> list[float]:
        """The weights."""
        space = np.geomspace if self.scale == "log" else np.linspace
        return [float(v) for v in space(self.low, self.high, self.points)]


Weights: TypeAlias = list[Nonnegative] | WeightRange


class GradientBaseline(Section):
    """Plain gradients."""

    method: Literal["gradient"]


class SmoothGradBaseline(Section):
    """Mean gradients of perturbed points, one explanation per scale."""

    method: Literal["smoothgrad"]
    scale: list[Positive]
    n_samples: Count = 100
    distribution: Literal["gaussian", "ball"] = "gaussian"


class LimeBaseline(Section):
    """Local linear fits, one explanation per scale."""

    method: Literal["lime"]
    scale: list[Positive]
    n_samples: Count = 1000
    distribution: Literal["gaussian", "uniform"] = "gaussian"
    kernel_width: Positive | None = None
    ridge: Nonnegative = 0.0
    fit_intercept: bool = True


class TabularLimeBaseline(Section):
    """The lime package."""

    method: Literal["tabular_lime"]
    n_samples: Count = 5000
    kernel_width: Positive | None = None
    discretize: bool = True


class ShapBaseline(Section):
    """The shap package, against the mean of the points."""

    method: Literal["shap"]
    units: list[Literal["output", "gradient"]] = ["gradient"]
    algorithm: Literal["auto", "exact", "permutation"] = "auto"


Baseline: TypeAlias = Annotated[
    GradientBaseline
    | SmoothGradBaseline
    | LimeBaseline
    | TabularLimeBaseline
    | ShapBaseline,
    Field(discriminator="method"),
]


class Plot(Section):
    """The losses on the axes."""

    x: str
    y: str


class ProblemSchema(Section):
    """A problem file: a function at some points, what to minimise, what to compare."""

    name: Annotated[str, Field(pattern=r"^[\w.-]+$")] | None = Field(
        None, description="of the files written; by default the name of this file"
    )
    description: str | None = None
    data: Data
    function: Formula | None = None
    model: Model | None = None
    objective: Losses
    sweep: dict[str, Weights] = {}
    baselines: list[Baseline] = []
    plot: Plot | None = None
    solver: str = "auto"
    tolerance: Positive = 1e-6
    seed: Seed = 0

    @model_validator(mode="after")
    def _consistent(self) -> ProblemSchema:
        if (self.function is None) == (self.model is None):
            raise PydanticCustomError(
                "one_function", "give either function or model", {}
            )
        if self.model is not None and self.data.grid is not None:
            raise PydanticCustomError(
                "grid_model", "a grid has no target for a model", {}
            )
        if not self.objective.given:
            raise PydanticCustomError("empty", "objective names no loss", {})
        return self

"""What a problem file may say: one strict model per section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError


class Section(BaseModel):
    """A mapping whose keys are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Nonnegative: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(ge=1)]
Several: TypeAlias = Annotated[int, Field(ge=2)]
Seed: TypeAlias = Annotated[int, Field(ge=0)]


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("label_type", "expected text or a number")
    return value


Label: TypeAlias = Annotated[str | int | float | bool, BeforeValidator(_scalar)]


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
                "expected exactly one of grid, sklearn and csv, got {given}",
                {"given": " and ".join(given) or "none of them"},
            )
        _refuse_settings(self, given[0], _NOT_OF_SOURCE[given[0]])
        return self


_NOT_OF_SOURCE = {
    "grid": ("target", "explain", "standardize"),
    "sklearn": ("target",),
    "csv": (),
}


def _refuse_settings(section: Section, chosen: str, names: tuple[str, ...]) -> None:
    """What would have no effect beside a choice is a mistake."""
    for name in sorted(set(names) & section.model_fields_set):
        raise PydanticCustomError(
            "no_effect",
            "{name} has no effect with {chosen}",
            {"name": name, "chosen": chosen},
        )


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
        if self.name == "power" and self.degree is None:
            raise PydanticCustomError("degree", "power needs a degree, such as 3")
        if self.name != "power":
            _refuse_settings(self, self.name, ("degree",))
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
    target_class: Label | None = Field(None, description="label to explain")

    @model_validator(mode="after")
    def _settings_of_kind(self) -> Model:
        _refuse_settings(self, self.kind, _NOT_OF_KIND[self.kind])
        return self


_NOT_OF_KIND = {
    "linear": ("task", "hidden", "activation", "regularization", "target_class"),
    "logistic": ("task", "hidden", "activation"),
    "mlp": (),
}


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
    lengthscale: Positive | None = Field(None, description="of gaussian weights")

    @model_validator(mode="after")
    def _lengthscale_of_gaussian(self) -> KnnGraph:
        if self.weights == "uniform":
            _refuse_settings(self, "uniform weights", ("lengthscale",))
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


# ---- sweep and baselines


class WeightRange(Section):
    """Weights from low to high."""

    low: Nonnegative
    high: Positive
    points: Several
    scale: Literal["log", "linear"] = "log"

    @model_validator(mode="after")
    def _rising(self) -> WeightRange:
        if self.low >= self.high:
            raise PydanticCustomError(
                "range",
                "expected low < high, got low {low} and high {high}",
                {"low": f"{self.low:g}", "high": f"{self.high:g}"},
            )
        if self.scale == "log" and self.low == 0:
            raise PydanticCustomError(
                "log_low", "a log scale needs low > 0; or use scale: linear"
            )
        return self

    @property
    def values(self) -> list[float]:
        """The weights."""
        space = np.geomspace if self.scale == "log" else np.linspace
        return [float(v) for v in space(self.low, self.high, self.points)]


def _shape_of_weights(value: Any) -> str | None:
    match value:
        case list():
            return "list"
        case dict() | WeightRange():
            return "range"
    return None


Weights: TypeAlias = Annotated[
    Annotated[list[Nonnegative], Field(min_length=1), Tag("list")]
    | Annotated[WeightRange, Tag("range")],
    Discriminator(
        _shape_of_weights,
        custom_error_type="weights_type",
        custom_error_message="expected a list or a range",
    ),
]
Scales: TypeAlias = Annotated[list[Positive], Field(min_length=1)]


class GradientBaseline(Section):
    """Plain gradients."""

    method: Literal["gradient"]


class SmoothGradBaseline(Section):
    """Mean gradients of perturbed points, one explanation per scale."""

    method: Literal["smoothgrad"]
    scale: Scales
    n_samples: Count = 100
    distribution: Literal["gaussian", "ball"] = "gaussian"


class LimeBaseline(Section):
    """Local linear fits, one explanation per scale."""

    method: Literal["lime"]
    scale: Scales
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
    units: Annotated[list[Literal["output", "gradient"]], Field(min_length=1)] = [
        "gradient"
    ]
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

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")] | None = Field(
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

    @property
    def explained(self) -> Formula | Model:
        """The function or the model: exactly one is given."""
        given = [part for part in (self.function, self.model) if part is not None]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_function",
                "expected exactly one of function and model, got {given}",
                {"given": "both" if given else "neither"},
            )
        return given[0]

    @model_validator(mode="after")
    def _consistent(self) -> ProblemSchema:
        if isinstance(self.explained, Formula):
            return self
        if self.data.grid is not None:
            raise PydanticCustomError(
                "grid_model", "a model learns from sklearn or csv, and data has a grid"
            )
        if self.data.csv is not None and self.data.target is None:
            raise PydanticCustomError(
                "no_target", "a model on a csv needs data.target, the column to learn"
            )
        return self


# ---- what stands where, for messages


def sections_at(location: tuple[str | int, ...]) -> list[type[Section]]:
    """The sections that may stand at a location, by its keys and chosen kinds."""
    found: list[type[Section]] = [ProblemSchema]
    for step in location:
        fields = [s.model_fields[str(step)] for s in found if step in s.model_fields]
        deeper = [inner for field in fields for inner in _sections_in(field.annotation)]
        chosen = [section for section in found if step in _kinds_of(section)]
        found = deeper or chosen or found
    return found


def kinds(location: tuple[str | int, ...]) -> list[str]:
    """The kinds to choose from at a location."""
    return [kind for section in sections_at(location) for kind in _kinds_of(section)]


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)


def _kinds_of(section: type[Section]) -> tuple[str, ...]:
    """The value of ``kind`` or ``method`` that chooses a section in a union."""
    for name in ("kind", "method"):
        if name in section.model_fields:
            return get_args(section.model_fields[name].annotation)
    return ()

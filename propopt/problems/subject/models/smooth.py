"""The key ``smooth`` of a model: gradients of its mean under noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from propopt._typing import Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.functions import Function, smoothed
from propopt.functions.calls import Calls
from propopt.functions.smoothing.smoothed import LawName
from propopt.problems.section import Positive, Section
from propopt.quantity import Quantity
from propopt.sampling.drawn.uniforms import N_BLOCKS
from propopt.structures.boxes import Boxes
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.tables.names import Labels, read_points
from propopt.tables.schema import TableSchema, array_scales


@dataclass(frozen=True, eq=False, repr=False)
class SmoothGradients(Function):
    """The values of a function, and the gradients of its mean near each point.

    Parameters
    ----------
    function : Function
        f, of which losses and baselines take values.
    mean : Function
        Its mean under a law, of which they take gradients.
    """

    function: Function
    mean: Function

    def __repr__(self) -> str:
        return repr(self.mean)

    @cached_property
    def quantity(self) -> Quantity:
        return self.function.quantity

    @property
    def schema(self) -> TableSchema | None:
        return self.mean.schema

    @property
    def features(self) -> tuple[str, ...] | None:
        return self.mean.features

    @cached_property
    def calls(self) -> Calls:
        return self.mean.calls

    @property
    def gradient_method(self) -> str:
        return self.mean.gradient_method

    @property
    def boxes(self) -> Boxes | None:
        """Those of the function."""
        return self.function.boxes

    @property
    def margin_boxes(self) -> Boxes | None:
        """Those of the function."""
        return self.function.margin_boxes

    @property
    def products(self) -> SumOfProducts | NoProducts:
        """Those of the function."""
        return self.function.products

    def products_in(self, n_columns: int) -> SumOfProducts | NoProducts:
        return self.function.products_in(n_columns)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return self.mean.estimate_at(points, labels)

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.function.value_at(points, labels)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self.mean.gradient_at(points, labels)


class Smooth(Section):
    """Slopes of the mean of a model under a law, by :func:`propopt.smoothed`.

    Values are those of the model itself.
    """

    law: LawName = Field(
        "gaussian",
        description="over what is averaged: x + δ ∘ ε with ε ~ N(0, I), or the values "
        "near x of the rows that are fitted on, the default of models that jump",
    )
    scale: Positive = Field(
        0.5,
        description="of gaussian noise, δ in standard deviations of each column of the "
        "rows that are fitted on",
    )
    n_samples: Annotated[int, Field(ge=2, le=1_000_000)] = Field(
        500,
        description="draws where nothing is known exactly, for gaussian noise pairs of "
        "them; gradients need at least two for each feature",
    )

    @model_validator(mode="after")
    def _no_noise_of_observed_values(self) -> Self:
        if self.law == "data" and "scale" in self.model_fields_set:
            raise PydanticCustomError(
                "scale_of_data_law",
                "scale: the data law has its own bandwidths; leave it out",
            )
        return self

    def check(self, n_numbers: int) -> None:
        """Refuse fewer pairs than the slopes of so many numeric columns need."""
        if self.law == "gaussian" and self.n_samples < 2 * n_numbers:
            raise InvalidInput(
                f"expected at least {2 * n_numbers}, two for each of {n_numbers} "
                f"numeric columns, got {self.n_samples}"
            )
        if self.law == "data" and self.n_samples % N_BLOCKS:
            raise InvalidInput(
                f"expected a multiple of {N_BLOCKS}, the number of blocks of draws "
                f"that tell their error, got {self.n_samples}"
            )

    def build(self, function: Function, table: Any, seed: int) -> Function:
        """The function with these gradients; of a table the law is made."""
        return SmoothGradients(function, self._mean(function, table, seed))

    def _mean(self, function: Function, table: Any, seed: int) -> Function:
        if self.law == "data":
            asked = "n_samples" in self.model_fields_set
            count = self.n_samples if asked else None
            return smoothed(function, law="data", data=table, n_samples=count, rng=seed)
        schema = function.schema
        sizes = _deviations(table) if schema is None else schema.scales("std")
        return smoothed(function, self.scale * sizes, self.n_samples, seed)


def _deviations(table: Any) -> Any:
    return array_scales(read_points(table, "X")[0], "std")

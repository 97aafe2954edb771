"""The key ``smooth`` of a model: gradients of its mean under noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from propopt._typing import Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.functions import Function, SmoothedFunction, smoothed
from propopt.functions.calls import Calls
from propopt.problems.section import Positive, Section
from propopt.tables.names import Labels, read_points
from propopt.tables.schema import TableSchema, array_scales


@dataclass(frozen=True, eq=False, repr=False)
class SmoothGradients(Function):
    """The values of a function, and the gradients of its mean under noise.

    Parameters
    ----------
    function : Function
        f, of which losses and baselines take values.
    mean : SmoothedFunction
        f_δ, of which they take gradients.
    """

    function: Function
    mean: SmoothedFunction

    def __repr__(self) -> str:
        return repr(self.mean)

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

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.function.value_at(points, labels)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self.mean.gradient_at(points, labels)


class Smooth(Section):
    """∇f_δ with f_δ(x) = E f(x + δ ∘ ε), ε ~ N(0, I), by :func:`propopt.smoothed`.

    Values are those of f itself.
    """

    scale: Positive = Field(
        0.5,
        description="of the noise, δ in standard deviations of each column of the rows "
        "that are fitted on",
    )
    n_samples: Annotated[int, Field(ge=2, le=1_000_000)] = Field(
        500, description="pairs of draws; gradients need at least two for each feature"
    )

    def check(self, n_numbers: int) -> None:
        """Refuse fewer pairs than the slopes of so many numeric columns need."""
        if self.n_samples < 2 * n_numbers:
            raise InvalidInput(
                f"expected at least {2 * n_numbers}, two for each of {n_numbers} "
                f"numeric columns, got {self.n_samples}"
            )

    def build(self, function: Function, table: Any, seed: int) -> Function:
        """The function with these gradients; of a table the deviations are taken."""
        schema = function.schema
        sizes = _deviations(table) if schema is None else schema.scales("std")
        mean = smoothed(function, self.scale * sizes, self.n_samples, seed)
        return SmoothGradients(function, mean)


def _deviations(table: Any) -> Any:
    return array_scales(read_points(table, "X")[0], "std")

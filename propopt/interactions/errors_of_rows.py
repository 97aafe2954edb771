"""How wrong a prediction is at a row: Err(y, ŷ)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Values
from propopt.base.checks import as_floats, did_you_mean
from propopt.base.errors import AdditiveErrorWarning, InvalidInput
from propopt.tables.frames import listed


class RowError(Protocol):
    """An error of each row, and what has to be known of a prediction for it.

    What is known is averaged over patches before the error is taken, so that it has to
    be numbers: a prediction, the probability of the class of the row, or of each class.
    """

    @property
    def name(self) -> str:
        """What files and tables call it."""

    @property
    def units(self) -> str:
        """Of the error, in words."""

    def known(self, predicted: Array, y: NDArray[Any]) -> Array:
        """What is kept of n predictions, (n, R): all, (n,) or (n, R); y (n,)."""
        return predicted.reshape(len(y), -1)

    def of(self, y: NDArray[Any], known: Array) -> Array:
        """Err of N rows and q predictors, (N, q); y (N,), known (N, q, R)."""


@final
@dataclass(frozen=True)
class SquaredError(RowError):
    """(y − ŷ)², of regressions; what it means in the population is proved."""

    name: str = "squared"
    units: str = "squared units of the target"

    def of(self, y: NDArray[Any], known: Array) -> Array:
        return (known[..., 0] - y[:, None]) ** 2


@final
@dataclass(frozen=True)
class AbsoluteError(RowError):
    """|y − ŷ|, Lipschitz, as the proof of coverage wants it.

    Important features have positive scores by it without any interaction: two normal
    effects of sizes b and normal noise, all in deviations of the noise, one of
    √(2/π) (2 √(1 + b²) − 1 − √(1 + 2b²)).
    """

    name: str = "absolute"
    units: str = "units of the target"

    def of(self, y: NDArray[Any], known: Array) -> Array:
        return np.abs(known[..., 0] - y[:, None])


@final
@dataclass(frozen=True)
class ProbabilityError(RowError):
    """1 − p of the class of the row: with two classes |y − p|."""

    name: str = "probability"
    units: str = "probability"

    def known(self, predicted: Array, y: NDArray[Any]) -> Array:
        return predicted[np.arange(len(y)), y.astype(np.intp)].reshape(-1, 1)

    def of(self, y: NDArray[Any], known: Array) -> Array:
        del y
        return 1.0 - known[..., 0]


@final
@dataclass(frozen=True)
class GivenError(RowError):
    """An error of the user, called once for many rows and predictors."""

    function: Callable[[Any, Any], Any]
    classes: NDArray[Any] | None = None  # (K,): what the targets of a classifier are
    units: str = "units of the error function"

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def of(self, y: NDArray[Any], known: Array) -> Array:
        n_rows, n_sets, n_outputs = known.shape
        targets = y if self.classes is None else self.classes[y.astype(np.intp)]
        flat = known.reshape(n_rows * n_sets, n_outputs)
        predictions = flat[:, 0] if self.classes is None else flat
        result = self.function(np.repeat(targets, n_sets), predictions)
        errors: Values = as_floats(result, "error")
        if errors.shape != (n_rows * n_sets,):
            raise InvalidInput(
                f"error: {self.name}: expected one error for each of "
                f"{n_rows * n_sets} rows, got shape {errors.shape}; a mean over rows "
                "is none, lambda y, p: (y - p) ** 2 is one for each"
            )
        if not np.isfinite(errors).all():
            wrong = int((~np.isfinite(errors)).sum())
            raise InvalidInput(
                f"error: {self.name}: {wrong} of {len(errors)} errors are not finite"
            )
        return errors.reshape(n_rows, n_sets)


ErrorChoice: TypeAlias = (
    Literal["auto", "squared", "absolute", "probability"] | Callable[[Any, Any], Any]
)


ABSOLUTE_LEAK: Final = 0.077
"""Score of two effects of one deviation of the noise each: see AbsoluteError."""

ABSOLUTE_LEAK_OF_TWO: Final = 0.38
"""And of two deviations each."""


def read_error(choice: ErrorChoice, classes: NDArray[Any] | None) -> RowError:
    """The error that is meant; by default squared, of classes their probability.

    classes (K,).
    """
    if callable(choice):
        return GivenError(choice, classes)
    if classes is None and choice in ("auto", "squared"):
        return SquaredError()
    if classes is None and choice == "absolute":
        warnings.warn(
            "error: by absolute errors features that matter have positive scores "
            "without any interaction: two effects of one deviation of the noise each "
            f"{ABSOLUTE_LEAK} of it, of two deviations {ABSOLUTE_LEAK_OF_TWO}; by "
            "squared errors these are 0",
            AdditiveErrorWarning,
            stacklevel=4,
        )
        return AbsoluteError()
    if classes is not None and choice in ("auto", "probability"):
        return ProbabilityError()
    fit = ["squared", "absolute"] if classes is None else ["probability"]
    label = "a regressor" if classes is None else "a classifier"
    near = did_you_mean(choice, ["auto", *fit])
    raise InvalidInput(
        f"error: of {label} expected 'auto', {listed(fit)} or a callable, got "
        f"{choice!r}{near}"
    )

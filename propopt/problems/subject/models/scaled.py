"""Linear models and networks, behind a scaler."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, Final, Literal

import numpy as np
from pydantic import Field
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from propopt.errors import InvalidInput
from propopt.memory import require_memory
from propopt.problems.parts import part
from propopt.problems.section import MOST_NUMBERS, Count, Nonnegative
from propopt.problems.subject.models.base import (
    ClassesSection,
    LearnedSection,
    Making,
    TaskSection,
    scaled,
)


class LinearModel(LearnedSection):
    """Least squares."""

    words: ClassVar[str] = "a linear model"

    kind: Literal["linear"]

    def make(self, making: Making) -> Any:
        return scaled(LinearRegression(), making)


class LogisticModel(LearnedSection, ClassesSection):
    """Logistic regression."""

    words: ClassVar[str] = "a logistic regression"

    kind: Literal["logistic"]
    regularization: Nonnegative = Field(1e-2, description="1/C")

    def make(self, making: Making) -> Any:
        strength = 1 / self.regularization if self.regularization else np.inf
        return scaled(LogisticRegression(C=strength, max_iter=10_000), making)


class NetworkModel(TaskSection):
    """A multi-layer perceptron."""

    words: ClassVar[str] = "an mlp"

    kind: Literal["mlp"]
    hidden: list[Count] = Field([32, 32], max_length=20)
    activation: Literal["tanh", "relu", "logistic", "identity"] = "tanh"
    regularization: Nonnegative = Field(1e-2, description="alpha")
    target: Literal["as_is", "standardized"] = Field(
        "as_is",
        description="what a regression is fitted to; standardized, the same alpha "
        "means the same in any units",
    )

    def make(self, making: Making) -> Any:
        if self.target == "standardized" and making.task == "classification":
            with part("target"):
                raise InvalidInput("labels of classes cannot be standardized")
        kind = MLPClassifier if making.task == "classification" else MLPRegressor
        network = kind(
            hidden_layer_sizes=tuple(self.hidden),
            activation=self.activation,
            alpha=self.regularization,
            solver="lbfgs",  # tables are small: it converges, least by chance
            max_iter=20_000,
            random_state=making.seed,
        )
        if self.target == "standardized":
            network = TransformedTargetRegressor(network, transformer=StandardScaler())
        return scaled(network, making)

    def check_size(self, n_columns: int, n_outputs: int, n_rows: int) -> None:
        """What L-BFGS keeps of the weights, and what each layer keeps of the rows."""
        widths = (n_columns, *self.hidden, n_outputs)
        n_weights = sum((1 + one) * other for one, other in pairwise(widths))
        n_bytes = 8.0 * (_WEIGHT_COPIES * n_weights + 3 * n_rows * sum(widths))
        with part("hidden"):
            if n_weights > MOST_NUMBERS:
                raise InvalidInput(
                    f"expected at most {MOST_NUMBERS:,} weights, got {n_weights:,}"
                )
            require_memory(n_bytes, "a network of this size", "make `hidden` smaller")


_WEIGHT_COPIES: Final = 42
"""Of all weights: ten pairs of steps and changes, and what each step needs."""

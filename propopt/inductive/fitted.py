"""What a fit leaves: explanations of the inputs that it is asked about."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Points
from propopt.inductive.inputs import Inputs
from propopt.inductive.process.model import (
    GaussianProcess,
    NewInputs,
    WeightPair,
    joint,
    read_weights,
)
from propopt.inductive.targets import read_gradients
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedProcess:
    """A Gaussian process with the table that it was fitted to.

    Parameters
    ----------
    inputs : Inputs
        How new inputs are read.
    targets : Labels
        The names of what has attributions.
    process : GaussianProcess
        Conditioned, with its weights free.
    weights : pair
        Those in use.
    settings : mapping
        What an explanation says of how it was made, beside the weights.
    """

    inputs: Inputs
    targets: Labels
    process: GaussianProcess
    weights: WeightPair
    settings: Mapping[str, Parameter]

    def explain_path(
        self,
        X_new: object,
        weights: Iterable[object],
        return_std: bool,
        gradients: object,
    ) -> list[Explanation]:
        """An explanation of each new input alone under each pair of weights."""
        start = time.perf_counter()
        new, labels = self._read(X_new, gradients)
        pairs = [read_weights(pair, self.process.basis) for pair in weights]
        answers = new.answers(pairs, return_std)
        seconds = (time.perf_counter() - start) / max(1, len(pairs))
        return [
            replace(self._explanation(W, pair, labels, seconds), details=details)
            for pair, (W, details) in zip(pairs, answers, strict=True)
        ]

    def explain_together(self, X_new: object) -> Explanation:
        """New inputs that are all appended at once."""
        start = time.perf_counter()
        new, labels = self._read(X_new, None)
        rotated = joint(self.process.under(self.weights), new.points)
        W = self.process.basis.unrotate(rotated)
        seconds = time.perf_counter() - start
        return self._explanation(W, self.weights, labels, seconds)

    def sample(
        self, X_new: object, count: int, rng: np.random.Generator, gradients: object
    ) -> Array:
        """Attributions from the posterior, shape (count, m, T)."""
        new, _ = self._read(X_new, gradients)
        return new.draws(self.weights, count, rng)

    def _read(self, X_new: object, gradients: object) -> tuple[NewInputs, Labels]:
        points, labels = self._points(X_new)
        rotated, basis = None, self.process.basis
        if gradients is not None:
            shape = len(points), basis.n_features
            rotated = basis.rotate(read_gradients(gradients, X_new, labels, shape))
        new = NewInputs(model=self.process, points=points, rotated=rotated)
        return new, labels

    def _points(self, X_new: object) -> tuple[Points, Labels]:
        """Where new inputs lie, and the names of rows and attributions."""
        points, labels = self.inputs.read(X_new, "X_new")
        if self.process.basis.n_features == self.inputs.n_features:
            return points, labels
        return points, replace(self.targets, points=labels.points)

    def _explanation(
        self, W: Attributions, weights: WeightPair, labels: Labels, seconds: float
    ) -> Explanation:
        robustness, smoothness = weights
        return Explanation(
            attributions=W,
            method="gaussian_process",
            labels=labels,
            parameters={
                "robustness": robustness,
                "smoothness": smoothness,
                **self.settings,
            },
            seconds=seconds,
        )

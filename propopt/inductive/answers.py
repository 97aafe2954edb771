"""New inputs, in blocks: each block is placed once and answered under every weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Points
from propopt.inductive.conditioning import blocks
from propopt.inductive.laws import Law
from propopt.inductive.model import Model, Pair


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """New inputs of which a model is asked.

    Parameters
    ----------
    model : Model
        With its weights still free.
    points : array (m, C)
        Where the new inputs lie.
    rotated : array (m, D) or None
        Their rotated gradients, where these are to be used.
    """

    model: Model
    points: Points
    rotated: Array | None

    def explained(
        self, weights: Sequence[Pair], return_std: bool
    ) -> list[tuple[Attributions, Mapping[str, Array]]]:
        """Attributions and details under each pair of weights."""
        basis = self.model.basis
        shape = len(self.points), basis.n_features
        found = [np.empty(shape) for _ in weights]
        spread = [np.empty(shape) for _ in weights if return_std]
        for rows, n, law in self._laws(weights):
            found[n][rows] = basis.unrotate(law.mean)
            if return_std:
                spread[n][rows] = law.deviations(basis)
        details = [{"standard_deviation": s} for s in spread] or [{} for _ in weights]
        return list(zip(found, details, strict=True))

    def sampled(self, weights: Pair, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws under one pair of weights, shape (n_samples, m, D)."""
        shape = n_samples, len(self.points), self.model.basis.n_features
        samples = np.empty(shape)
        for rows, _, law in self._laws([weights], n_samples):
            samples[:, rows] = law.draw(self.model.basis, n_samples, rng)
        return samples

    def _laws(
        self, weights: Sequence[Pair], copies: int = 1
    ) -> Iterator[tuple[slice, int, Law]]:
        """The law of each block of new points under each pair of weights."""
        state = self.model.state
        models = [self.model.weighed(pair) for pair in weights]
        n_numbers = max(self.points.shape[1], self.model.basis.n_features)
        width = max(len(state.inducing), 2 * n_numbers * copies)
        for rows in blocks(len(self.points), 8 * width):
            queries = state.queries(self.points[rows])
            known = None if self.rotated is None else self.rotated[rows]
            for n, model in enumerate(models):
                yield rows, n, model.law(queries, known)

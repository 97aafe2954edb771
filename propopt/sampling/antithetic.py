"""Antithetic pairs of perturbations: values on both sides, and the slopes they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions, Points, Values
from propopt.batches import row_blocks
from propopt.errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class AntitheticPairs:
    """The pairs x ± e_s around any point x.

    Parameters
    ----------
    noise : array (S, D)
        e_s, zero in columns that are left as they are.
    moved : array of bool (D,)
        The other columns.
    """

    noise: Array
    moved: NDArray[np.bool_]

    @property
    def n_pairs(self) -> int:
        """The number S of pairs."""
        return len(self.noise)

    def sides(
        self,
        evaluate: Callable[[Points], Values],
        points: Points,
        instead: Mapping[int, Array] | None = None,
    ) -> tuple[Array, Array]:
        """Values f(x_n + e_s) and f(x_n − e_s), shape (n, S) each.

        Of columns j that are in ``instead`` both sides have its values (S,).

        Every call of ``evaluate`` has both sides of as many pairs as fit into 32 MiB
        and 16,384 rows.
        """
        shape = len(points), self.n_pairs
        ahead, behind = np.empty(np.prod(shape)), np.empty(np.prod(shape))
        for block in row_blocks(ahead.size, points.shape[1], copies=2):
            rows, pairs = np.divmod(np.arange(block.start, block.stop), self.n_pairs)
            centers, noise = points[rows], self.noise[pairs]
            both = np.concatenate([centers + noise, centers - noise])
            for j, given in (instead or {}).items():
                both[:, j] = np.tile(given[pairs], 2)
            values = evaluate(both)
            ahead[block], behind[block] = np.split(values, 2)
        return ahead.reshape(shape), behind.reshape(shape)

    def slopes(self, odd: Array) -> Attributions:
        """Least-squares slopes of (f(x + e_s) − f(x − e_s)) / 2 upon e_s, (n, D)."""
        slopes = np.zeros((len(odd), len(self.moved)))
        slopes[:, self.moved] = odd @ self._inverse
        return slopes

    def slopes_without(self, odd: Array, left_out: NDArray[np.intp]) -> Attributions:
        """The slopes where some of the pairs are left out, (n, D)."""
        design = np.delete(self.noise[:, self.moved], left_out, axis=0)
        products = np.delete(odd, left_out, axis=1) @ design
        slopes = np.zeros((len(odd), len(self.moved)))
        slopes[:, self.moved] = np.linalg.solve(design.T @ design, products.T).T
        return slopes

    def errors(self, odd: Array) -> Attributions:
        """Standard errors of the slopes, for residuals of unequal variance (n, D)."""
        # HC3: Var g_d = Σ_s P_sd² r_s² / (1 − h_s)²,  h the leverages
        design, inverse = self.noise[:, self.moved], self._inverse
        leverages = (design * inverse).sum(axis=1)
        residuals = (odd - (odd @ inverse) @ design.T) / (1.0 - leverages)
        errors = np.zeros((len(odd), len(self.moved)))
        errors[:, self.moved] = np.sqrt(residuals**2 @ inverse**2)
        return errors

    @cached_property
    def _inverse(self) -> Array:
        """P = E (EᵀE)⁻¹, shape (S, d), for the d columns that move."""
        design = self.noise[:, self.moved]
        n_moved = design.shape[1]
        if self.n_pairs < 2 * n_moved:
            raise InvalidInput(
                f"n_samples: {self.n_pairs} pairs are too few for the slopes of "
                f"{n_moved} features; give at least {2 * n_moved}"
            )
        return np.asarray(np.linalg.solve(design.T @ design, design.T).T, np.float64)

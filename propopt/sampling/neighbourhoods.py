"""Samples around points, and the regressors of a local linear fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.batches import Budget


@final
@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """S samples around each of n points.

    Parameters
    ----------
    samples : array (n, S, D)
        Where f is evaluated.
    regressors : array (n, S, D)
        What is regressed on.
    weights : array (n, S) or None
        π; None where all are one.
    origin : array (n, D)
        What the regressors are counted from.
    contrast : array (n, D)
        What slopes are multiplied by; 0 where a regressor never changes.
    units : array (n, D)
        The sizes of the regressors.
    """

    samples: Array
    regressors: Array
    weights: Array | None
    origin: Array
    contrast: Array
    units: Array

    def parts(self, budget: Budget) -> Iterator[tuple[slice, Neighbourhood]]:
        """Some points after the other, with regressors that keep to the budget."""
        row_bytes = self.regressors[0].nbytes
        for rows in budget.blocks(len(self.regressors), row_bytes):
            yield (
                rows,
                Neighbourhood(
                    self.samples[rows],
                    self.regressors[rows],
                    None if self.weights is None else self.weights[rows],
                    self.origin[rows],
                    self.contrast[rows],
                    self.units[rows],
                ),
            )

    @property
    def is_constant(self) -> Truths:
        """Whether a regressor is zero in all samples, for want of another category."""
        return np.asarray(self.contrast == 0)


class Neighbourhoods(Protocol):
    """A way to draw samples around points, to code them and to weight them."""

    def around(
        self, points: Points, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Neighbourhood]]:
        """Samples around consecutive points (N, D), in blocks that fit into memory.

        What is drawn around a point depends on the seed and on its position, neither
        on later points nor on the size of blocks.

        Parameters
        ----------
        points : array (N, D)
            Numbers and codes.
        rng : numpy.random.Generator
            Where draws come from; nothing else may draw from it meanwhile.
        """

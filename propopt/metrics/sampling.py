"""Statistics of perturbed points, streamed in blocks that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.sampling.perturbations import Distribution, Perturbations


Statistic: TypeAlias = Callable[[slice, Array], Array]
"""From rows and their perturbations (n, s, D) to an array (n, s, ...) that is small."""


@dataclass(frozen=True, kw_only=True)
class Noisy:
    """The settings that all metrics with perturbations share.

    Codes of categories, where the function has a schema, and numbers that are missing
    are never perturbed.

    Parameters
    ----------
    scale : float
        δ > 0, in the units of the features: the standard deviation of the noise, or
        the half-width or radius of its support.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"gaussian", "uniform", "ball"}
        ε ~ N(0, δ² I), uniform in the cube [−δ, δ]^D, or uniform in the ball of radius
        δ.
    """

    scale: float = 0.1
    n_samples: int = 100
    distribution: Distribution = "gaussian"

    def __post_init__(self) -> None:
        self._perturbations()

    def _perturbations(self) -> Perturbations:
        return Perturbations(
            scale=self.scale, n_samples=self.n_samples, distribution=self.distribution
        )

    def _sampling(self, fixed: NDArray[np.bool_], rng: np.random.Generator) -> Sampling:
        return Sampling(perturbations=self._perturbations(), fixed=fixed, rng=rng)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampling:
    """Perturbations of all points, and what is computed of them.

    Parameters
    ----------
    perturbations : Perturbations
        The law of ε.
    fixed : bool array (N, D)
        What is not perturbed: codes of categories, and numbers that are missing.
    rng : numpy.random.Generator
        Where the draws come from.
    """

    perturbations: Perturbations
    fixed: NDArray[np.bool_]
    rng: np.random.Generator

    def rows(self, statistic: Statistic) -> Iterator[tuple[slice, Array]]:
        """The statistic (n, S, ...) of all S samples, for consecutive rows."""
        shape = self.fixed.shape
        blocks = self.perturbations.blocks(shape, self.rng, split=True)
        for rows, pieces in groupby(blocks, key=itemgetter(0)):
            values = [statistic(rows, self._free(rows, noise)) for _, noise in pieces]
            yield rows, np.concatenate(values, axis=1)

    def reduced(self, statistic: Statistic, reduce: Callable[[Array], Array]) -> Array:
        """One number per row, (N,): ``reduce`` of its statistic (n, S)."""
        return np.concatenate([reduce(values) for _, values in self.rows(statistic)])

    def _free(self, rows: slice, noise: Array) -> Array:
        fixed = self.fixed[rows, None]
        if fixed.any():
            noise[np.broadcast_to(fixed, noise.shape)] = 0
        return noise

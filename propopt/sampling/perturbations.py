"""Random perturbations ε of points, drawn in blocks that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from propopt._typing import Array
from propopt.batches import Budget
from propopt.checks import read_count, read_positive
from propopt.errors import InvalidInput


Distribution: TypeAlias = Literal["ball", "gaussian", "uniform"]

PERTURBED_POINTS: Final = Budget(2**23)
"""Largest array of perturbed points; its size never changes a result."""


@dataclass(frozen=True, kw_only=True)
class Perturbations:
    """Independent draws ε around each point, one law for all of them.

    ========== =============================================================
    gaussian   ε ~ N(0, δ² I)
    uniform    uniform in the cube [−δ, δ]^D
    ball       uniform in the ball of *radius* δ (the paper's text has δ²)
    ========== =============================================================

    Parameters
    ----------
    scale : float
        δ > 0, in the units of the features.
    n_samples : int
        S, the number of draws per point.
    distribution : {"gaussian", "uniform", "ball"}
        The law of ε.
    """

    scale: float
    n_samples: int
    distribution: Distribution = "gaussian"

    def __post_init__(self) -> None:
        read_positive(self.scale, "scale")
        read_count(self.n_samples, "n_samples")
        names = get_args(Distribution)
        if self.distribution not in names:
            raise InvalidInput(
                f"distribution: expected one of {', '.join(names)}, "
                f"got {self.distribution!r}"
            )

    def blocks(
        self,
        shape: tuple[int, int],
        rng: np.random.Generator,
        *,
        units: Array | None = None,
        split: bool = False,
    ) -> Iterator[tuple[slice, Array]]:
        """Draws (n, s, D) for consecutive rows of an (N, D) table, and those rows.

        The draws are one stream in the order point, sample, feature: those of point n
        depend on the seed and on n, neither on later points nor on the block size.
        Each block is drawn while the last is used, by another thread.

        Parameters
        ----------
        shape : tuple
            (N, D).
        rng : numpy.random.Generator
            Where the draws come from; nothing else may draw from it meanwhile.
        units : array (D,), optional
            What the draws are multiplied by; a feature with 0 is not perturbed, and
            the law is that of the others alone.
        split : bool
            Whether the samples of one point may be spread over several blocks.
        """
        plain = units is None or bool((units == 1.0).all())
        scales = None if plain else units
        yield from prefetch(self._blocks(shape, rng, scales, split))

    def _blocks(
        self,
        shape: tuple[int, int],
        rng: np.random.Generator,
        units: Array | None,
        split: bool,
    ) -> Iterator[tuple[slice, Array]]:
        for rows, n_samples in self._plan(*shape, split=split):
            together = rows.stop - rows.start, n_samples, shape[1]
            if units is None:
                yield rows, self.draw(together, rng)
            else:
                yield rows, self._draw_in_units(together, rng, units)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Perturbations of the given shape (..., D)."""
        if self.distribution == "gaussian":
            draws = rng.standard_normal(shape)
            draws *= self.scale
            return draws
        if self.distribution == "uniform":
            return rng.uniform(-self.scale, self.scale, shape)
        # D coordinates of a uniform point on the sphere in D + 2 dimensions are
        # uniform in the D-ball: one draw, so that the stream stays in order.
        sphere = rng.standard_normal((*shape[:-1], shape[-1] + 2))
        sphere *= self.scale / np.linalg.norm(sphere, axis=-1, keepdims=True)
        return sphere[..., :-2]

    def _draw_in_units(
        self, shape: tuple[int, int, int], rng: np.random.Generator, units: Array
    ) -> Array:
        moved = units > 0
        if moved.all():
            everywhere = self.draw(shape, rng)
            everywhere *= units
            return everywhere
        draws = np.zeros(shape)
        of_moved = (*shape[:-1], int(moved.sum()))
        draws[..., moved] = self.draw(of_moved, rng) * units[moved]
        return draws

    def _plan(
        self, n_points: int, n_features: int, *, split: bool
    ) -> Iterator[tuple[slice, int]]:
        row_bytes = 8 * n_features
        room = PERTURBED_POINTS.rows(row_bytes)
        samples = min(room, self.n_samples) if split else self.n_samples
        for rows in PERTURBED_POINTS.blocks(n_points, row_bytes, self.n_samples):
            for done in range(0, self.n_samples, samples):
                yield rows, min(samples, self.n_samples - done)


_Item = TypeVar("_Item")


def prefetch(items: Iterator[_Item]) -> Iterator[_Item]:
    """The same items in the same order, each made by a thread of its own.

    It pays where making an item releases the interpreter, as random draws do. Items are
    made one after the other, so that what they draw does not change.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item

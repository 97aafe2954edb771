"""Laws of perturbations: noise, antithetic pairs, neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.checks import read_count, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget, row_blocks, with_thread_fallback
from propopt.laws.regressions import Neighbourhood


PERTURBED_POINTS: Final = Budget(2**23)
"""Memory of one block of draws, made while the model is evaluated."""


@dataclass(frozen=True, kw_only=True)
class Perturbations:
    """The law of independent draws ε ~ N(0, δ² I) around each point."""

    scale: float  # δ > 0, in the units of the features
    n_samples: int  # S, the number of draws per point

    def __post_init__(self) -> None:
        read_positive(self.scale, "scale")
        read_count(self.n_samples, "n_samples")

    def blocks(
        self,
        shape: tuple[int, int],
        rng: np.random.Generator,
        *,
        units: Array | None = None,  # shape (D,)
        split: bool = False,
    ) -> Iterator[tuple[slice, Array]]:
        """Yield consecutive rows of an (N, D) table with their draws (n, s, D).

        There is one stream in the order point, sample, feature: draws do not depend on
        later points or the size of blocks. A thread draws one block ahead.

        Parameters
        ----------
        shape : tuple of int
            The shape (N, D) of the table.
        rng : numpy.random.Generator
            The generator, which is advanced.
        units : array (D,), optional
            Factors ≥ 0 of the draws of each column, such as its standard deviation. A
            column with factor 0 is not perturbed. By default all are 1.
        split : bool
            Whether the S draws of a row may come in several blocks, to save memory.

        Returns
        -------
        iterator of tuples of slice and array (n, s, D)
            The n rows and their draws, in units of the columns. s = S unless draws are
            split; then several blocks in succession may have the same rows.
        """
        row_bytes = 8 * shape[1]
        room = PERTURBED_POINTS.rows(row_bytes) if split else self.n_samples
        samples = min(room, self.n_samples)

        def drawn() -> Iterator[tuple[slice, Array]]:
            for rows in PERTURBED_POINTS.blocks(shape[0], row_bytes, self.n_samples):
                for done in range(0, self.n_samples, samples):
                    count = min(samples, self.n_samples - done)
                    block_shape = rows.stop - rows.start, count, shape[1]
                    yield rows, self._draw_in_units(block_shape, rng, units)

        return prefetch(drawn())

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw perturbations of a given shape (..., D).

        Parameters
        ----------
        shape : tuple of int
            The shape of the result; its last number is D.
        rng : numpy.random.Generator
            The generator, which is advanced.

        Returns
        -------
        array (..., D)
            Independent draws of ε, in units of the features.
        """
        draws = rng.standard_normal(shape)
        draws *= self.scale
        return draws

    def _draw_in_units(
        self,
        shape: tuple[int, int, int],
        rng: np.random.Generator,
        units: Array | None,
    ) -> Array:
        """Draws times units; columns with the unit 0 are not drawn."""
        if units is None or (units > 0).all():
            everywhere = self.draw(shape, rng)
            if units is not None:
                everywhere *= units
            return everywhere
        draws = np.zeros(shape)
        moved = units > 0
        of_moved = (*shape[:-1], int(moved.sum()))
        draws[..., moved] = self.draw(of_moved, rng) * units[moved]
        return draws


_Item = TypeVar("_Item")


def prefetch(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield the items in order, each computed ahead by a thread."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        following = with_thread_fallback(
            lambda: thread.submit(next, items, None), lambda: None
        )
        if following is None:  # without a thread
            yield from items
            return
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item


# ---- Antithetic pairs of perturbations: values on both sides, and slopes


@final
@dataclass(frozen=True, eq=False)
class AntitheticPairs:
    """Antithetic pairs x ± e_s around any point x, and slopes from them."""

    noise: Array  # (S, D): e_s, zero in fixed columns
    moved: NDArray[np.bool_]  # (D,): the perturbed columns

    @property
    def n_pairs(self) -> int:
        return len(self.noise)

    def sides(
        self,
        evaluate: Callable[[Points], Values],
        points: Points,
        instead: Mapping[int, Array] | None = None,
    ) -> tuple[Array, Array]:
        """Values f(x_n ± e_s), (n, S) each, with columns replaced by ``instead``."""
        shape = len(points), self.n_pairs
        ahead = np.empty(np.prod(shape))
        behind = np.empty(np.prod(shape))
        for block in row_blocks(ahead.size, points.shape[1], copies=2):
            rows, pairs = np.divmod(np.arange(block.start, block.stop), self.n_pairs)
            centers = points[rows]
            noise = self.noise[pairs]
            both = np.concatenate([centers + noise, centers - noise])
            for j, replacement in (instead or {}).items():
                both[:, j] = np.tile(replacement[pairs], 2)
            values = evaluate(both)
            ahead[block], behind[block] = np.split(values, 2)
        return ahead.reshape(shape), behind.reshape(shape)

    def slopes(self, odd: Array, left_out: NDArray[np.intp]) -> Attributions:
        """Slopes of least squares of (f(x + e_s) − f(x − e_s)) / 2 on e_s, (n, D).

        Without some of the pairs.
        """
        n_moved = np.count_nonzero(self.moved)
        if self.n_pairs < 2 * n_moved:
            raise InvalidInput(
                f"n_samples: {self.n_pairs} pairs are too few for the slopes of "
                f"{n_moved} features; give at least {2 * n_moved}"
            )
        design = np.delete(self.noise[:, self.moved], left_out, axis=0)
        products = np.delete(odd, left_out, axis=1) @ design
        slopes = np.zeros((len(odd), len(self.moved)))
        slopes[:, self.moved] = np.linalg.solve(design.T @ design, products.T).T
        return slopes


# ---- Neighbourhoods of noise, for regressions on it


def noisy_neighbourhoods(
    noise: Perturbations,  # ε
    kernel_width: float | None,  # π = exp(−‖ε‖² / (2 kernel_width²)); None: ones
    scales: Array,  # (D,): factors of ε; 0 for constant columns
    points: Points,
    rng: np.random.Generator,
) -> Iterator[tuple[slice, Neighbourhood]]:
    """Samples x + ε around blocks of points; regressors are ε, with the origin x."""
    still = scales == 0.0
    units = np.where(still, 1.0, noise.scale * scales)
    for rows, draws in noise.blocks(points.shape, rng, units=scales):
        centres = points[rows]
        weights = None
        if kernel_width is not None:
            weights = _kernel_weights(draws * (noise.scale / units), kernel_width)
        yield (
            rows,
            Neighbourhood(
                centres[:, None] + draws,
                draws,
                weights,
                origin=np.where(still, 0.0, centres),
                contrast=np.broadcast_to(~still * 1.0, centres.shape),
                units=np.broadcast_to(units, centres.shape),
            ),
        )


def _kernel_weights(steps: Array, kernel_width: float) -> Array:
    """The weights π, (n, S), of steps ε (n, S, D) in units of the columns."""
    squares = np.einsum("nsd,nsd->ns", steps, steps)
    weights: Array = np.exp(-squares / (2 * kernel_width**2))
    if weights.max(axis=1).min() < np.finfo(float).tiny:
        raise InvalidInput(
            f"kernel_width: {kernel_width} is so small relative to scale that all "
            "weights of a point round to zero"
        )
    return weights

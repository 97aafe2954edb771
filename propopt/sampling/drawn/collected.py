"""Draws, the values of a function there, and contrasts by pairs, table by table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.batches import row_blocks
from propopt.sampling.drawn.design import Design, Evaluator
from propopt.sampling.drawn.fitted import fitted
from propopt.sampling.drawn.other_values import other_values
from propopt.sampling.drawn.pair_sums import PairSums
from propopt.sampling.drawn.uniforms import N_BLOCKS


@final
@dataclass(frozen=True, eq=False)
class Collected:
    """Tables that are filled in place: all that the function answers is kept.

    Parameters
    ----------
    design : Design
        What is drawn.
    evaluate : callable
        The function f.
    values : array (N, B, s)
        f(V) in each draw of each block.
    known : array (N, B, s) or None
        Those of the control.
    pairs : PairSums
        Contrasts by pairs.
    means, slopes : array (B, N) and (B, N, D)
        Of f in each block, by least squares over all draws.
    """

    design: Design
    evaluate: Evaluator
    values: Array
    known: Array | None
    pairs: PairSums
    means: Array
    slopes: Array

    def fill(self, start: int, stop: int) -> None:
        """Draw ``start`` to ``stop`` of each block around all rows; fit all draws."""
        n_rows, width = self.design.points.shape
        first, second = self.design.uniforms(0, stop)
        for rows in row_blocks(n_rows, width, copies=N_BLOCKS * stop):
            V = self.design.law.draws(self.design.points[rows], first)
            blocks = V.reshape(len(V), N_BLOCKS, stop, width)
            others = second.reshape(N_BLOCKS, stop, width)
            for draws in _parts(start, stop, width, len(V)):
                self._fill(rows, draws, blocks[:, :, draws], others[:, draws])
            known = None if self.known is None else self.known[rows]
            fit = fitted(self.design, rows, blocks, self.values[rows], known)
            self.means[:, rows], self.slopes[:, rows] = fit

    def _fill(self, rows: slice, draws: slice, V: Array, uniforms: Array) -> None:
        """Values at some draws (n, B, s, D) around some rows, and contrasts there."""
        control, n, width = self.design.control, len(V), V.shape[-1]
        around = Around(
            self.design.points[rows],
            V.reshape(n, -1, width),
            uniforms.reshape(-1, width),
        )
        f = around.values(self.evaluate)
        self.values[rows, :, draws] = f.reshape(V.shape[:3])
        c = around.contrasts(self.design, self.evaluate, f).reshape(V.shape)
        if control is None or self.known is None:
            self.pairs.add(rows, c)
            return
        m = around.values(control.evaluate)
        self.known[rows, :, draws] = m.reshape(V.shape[:3])
        known = around.contrasts(self.design, control.evaluate, m).reshape(V.shape)
        self.pairs.add_controlled(rows, c, known)


def _parts(start: int, stop: int, width: int, n_rows: int) -> Iterator[slice]:
    """Draws of each block of which tables are built at once."""
    for part in row_blocks(stop - start, width, copies=N_BLOCKS * n_rows):
        yield slice(start + part.start, start + part.stop)


@final
@dataclass(frozen=True, eq=False)
class Around:
    """Draws around rows.

    Parameters
    ----------
    points : array (n, D)
        The rows.
    draws : array (n, S, D)
        V.
    uniforms : array (S, D)
        For alternatives that are drawn.
    """

    points: Array
    draws: Array
    uniforms: Array

    def values(self, evaluate: Evaluator) -> Array:
        """f(V), (n, S)."""
        width = self.points.shape[1]
        return evaluate(self.draws.reshape(-1, width)).reshape(self.draws.shape[:2])

    def contrasts(self, design: Design, evaluate: Evaluator, f: Array) -> Array:
        """Contrasts by pairs in each draw, 0 in other columns, (n, S, D)."""
        found = np.zeros(self.draws.shape)
        for j, column in enumerate(design.law.columns):
            x, drawn, uniforms = (
                self.points[:, j],
                self.draws[:, :, j],
                self.uniforms[:, j],
            )
            for rows, others, weights in other_values(
                column, x, drawn, uniforms, design.paired
            ):
                if len(rows) == 0:
                    continue
                changed = self.draws[rows]
                changed[:, :, j] = others
                there = evaluate(changed.reshape(-1, changed.shape[2]))
                found[rows, :, j] += weights * (f[rows] - there.reshape(others.shape))
        return found

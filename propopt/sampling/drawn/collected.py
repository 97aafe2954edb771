"""Draws, the values of a function there, and contrasts by pairs, table by table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.batches import row_blocks
from propopt.sampling.drawn.design import Design, Evaluator
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
    """

    design: Design
    evaluate: Evaluator
    values: Array
    known: Array | None
    pairs: PairSums

    def fill(self, start: int, stop: int) -> None:
        """Draw ``start`` to ``stop`` of each block around all rows."""
        for rows, draws in self._parts(start, stop):
            self._fill(rows, draws)

    def _parts(self, start: int, stop: int) -> Iterator[tuple[slice, slice]]:
        n_rows, width = self.design.points.shape
        for rows in row_blocks(n_rows, width, copies=N_BLOCKS * max(stop - start, 1)):
            n = rows.stop - rows.start
            for part in row_blocks(stop - start, width, copies=N_BLOCKS * n):
                yield rows, slice(start + part.start, start + part.stop)

    def _fill(self, rows: slice, draws: slice) -> None:
        """Some draws around some rows, and their alternatives."""
        points, control = self.design.points[rows], self.design.control
        first, second = self.design.uniforms(draws.start, draws.stop)
        V = self.design.law.draws(points, first)
        around = Around(points, V, second)
        blocks = (len(V), N_BLOCKS, draws.stop - draws.start)
        f = around.values(self.evaluate)
        self.values[rows, :, draws] = f.reshape(blocks)
        c = around.contrasts(self.design, self.evaluate, f).reshape(*blocks, -1)
        if control is None or self.known is None:
            self.pairs.add(rows, c)
            return
        m = around.values(control.evaluate)
        self.known[rows, :, draws] = m.reshape(blocks)
        known = around.contrasts(self.design, control.evaluate, m).reshape(*blocks, -1)
        self.pairs.add_controlled(rows, c, known)


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

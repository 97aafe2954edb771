"""Means and contrasts of sums of boxes under a law, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Attributions, Points, Values
from propopt.batches import Budget
from propopt.sampling.laws.known import KnownCells, Law
from propopt.structures.boxes import Boxes
from propopt.structures.products import Products


MEANS_AT_ONCE: Final = Budget(2**25, 32)
"""The largest arrays that are built at once; their size never changes a result."""


@final
@dataclass(frozen=True, eq=False)
class BoxMeans:
    """E f(V) and Σ_v r_j(v) E f(v, V_−j) of a sum of boxes f, at rows.

    With P_u = q(A_u) and R_u = r(A_u) of each set, columns being independent,

    E f = base + Σ_l v_l Π_u P_u,  contrast_j = Σ_l v_l R_u Π_{w≠u} P_w.

    Parameters
    ----------
    boxes : Boxes
        f.
    law : Law
        Of the columns, and their contrasts.

    Examples
    --------
    The slope of the mean of 1[x > 0] under noise of deviation ½ is a normal density.

    >>> import numpy as np
    >>> from propopt.sampling.laws import NoiseLaw
    >>> from propopt.structures.boxes import Tree
    >>> step = Tree.of([0, -1, -1], [0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1])
    >>> law = NoiseLaw(np.array([0.5]), (None,))
    >>> means = BoxMeans(Boxes.of_trees([step], n_columns=1), law)
    >>> means.of(np.array([[0.0]]))[1] * 0.5 * np.sqrt(2 * np.pi)
    array([[1.]])
    """

    boxes: Boxes
    law: Law

    @cached_property
    def _known(self) -> KnownCells:
        return self.law.knows(self.boxes.sets)

    @cached_property
    def _products(self) -> Products:
        """What f is of the sets that the law tells apart."""
        known = self._known
        return self.boxes.products.with_factors(
            known.places, known.dropped, known.column
        ).collected()

    def of(self, points: Points) -> tuple[Values, Attributions]:
        """Means (N,) and contrasts (N, D); each row for itself, to the last bit.

        Parameters
        ----------
        points : array (N, D)
            Numbers, NaN where they are missing, and codes.
        """
        values = np.empty(len(points))
        attributions = np.empty(points.shape)
        row_bytes = self._known.row_bytes + self._products.row_bytes
        for rows in MEANS_AT_ONCE.blocks(len(points), row_bytes):
            values[rows], attributions[rows] = self._block(points[rows])
        return values, attributions

    def _block(self, points: Points) -> tuple[Values, Attributions]:
        return self._products.contrasts(self._known.measures(points))

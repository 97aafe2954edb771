"""Robustness towards rows that stay as they are."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.losses import PropertyLoss
from propopt.maps import LinearMap, OverPoints
from propopt.penalties import Penalty, Squared


@final
class AnchoredRobustness(PropertyLoss):
    """2 Σ_n Σ_j s_nj ‖w_n − v_j‖²: rows are drawn to fixed ones, not to each other.

    What the ordered pairs of :class:`propopt.PairwiseRobustness` are where one of two
    is fixed.

    Parameters
    ----------
    fixed : array (n, D)
        v_j.
    near : array (m, k)
        Places of the fixed rows to which each row is drawn.
    similarities : array (m, k)
        s_nj ≥ 0, not all of them zero.
    name : str
        What the loss is called in weights and results.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = AnchoredRobustness(
    ...     np.array([[1.0, 2.0]]), near=np.array([[0]]), similarities=np.array([[3.0]])
    ... )
    >>> round(drawn.value(np.zeros((1, 2))), 9)
    30.0
    """

    def __init__(
        self,
        fixed: Attributions,
        near: NDArray[np.intp],
        similarities: Array,
        *,
        name: str = "pairwise_robustness",
    ) -> None:
        self.name = name
        self._size = len(near)
        self._rows, places = np.nonzero(similarities)
        self._roots = np.sqrt(2.0 * similarities[self._rows, places])
        self._ends = fixed[near[self._rows, places]]

    @cached_property
    def map(self) -> LinearMap:
        n_pairs = len(self._rows)
        starts = np.arange(n_pairs + 1)
        shape = (n_pairs, self._size)
        return OverPoints(sp.csr_array((self._roots, self._rows, starts), shape=shape))

    @property
    def penalty(self) -> Penalty:
        return Squared()

    @cached_property
    def target(self) -> Array:
        return np.asarray(self._roots[:, None] * self._ends)

    @property
    def n_points(self) -> int:
        return self._size

    @property
    def n_features(self) -> int:
        return int(self._ends.shape[1])

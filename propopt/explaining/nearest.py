"""The reference rows that are similar to a new row: one row at a time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.graphs.neighbours import distances_between, gaussian


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NearestRows:
    """The rule of the reference graph, for rows that are not in it.

    Parameters
    ----------
    coordinates : array (n, M)
        Where the reference rows lie.
    n_neighbors : int
        How many of them a new row is compared with; of several at the same distance
        those that come first.
    lengthscale : float or None
        Λ of the similarities exp(−d²/2Λ²); None for similarities of one.

    Examples
    --------
    >>> import numpy as np
    >>> rows = NearestRows(
    ...     coordinates=np.array([[0.0], [1.0], [3.0]]), n_neighbors=2, lengthscale=None
    ... )
    >>> rows.of(np.array([2.5]))
    (array([2, 1]), array([1., 1.]))
    """

    coordinates: Points
    n_neighbors: int
    lengthscale: float | None

    @property
    def settings(self) -> dict[str, str]:
        """What an explanation says of how its rows are compared."""
        content = np.ascontiguousarray(self.coordinates, dtype="<f8").tobytes()
        length = self.lengthscale
        return {
            "graph": f"{self.n_neighbors} nearest of {len(self.coordinates)} "
            "reference rows",
            "similarities": "uniform"
            if length is None
            else f"gaussian, lengthscale {length:.6g}",
            "reference": f"sha256:{hashlib.sha256(content).hexdigest()[:12]}",
        }

    def of(self, point: Array) -> tuple[NDArray[np.intp], Array]:
        """The nearest rows (k,), nearest first, and their similarities (k,)."""
        apart = distances_between(point[None], self.coordinates)[0]
        near = np.argsort(apart, kind="stable")[: self.n_neighbors]
        if self.lengthscale is None:
            return near, np.ones(len(near))
        return near, gaussian(apart[near], self.lengthscale)

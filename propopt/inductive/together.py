"""New inputs appended all at once: they then pull on one another."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from propopt._typing import Array, Points
from propopt.inductive.model import Weighed
from propopt.memory import require_memory


def together(weighed: Weighed, X: Points) -> Array:
    """Rotated attributions of all of X, appended without gradients, shape (m, D).

    Before smoothness, rotated feature j has the mean m_j and, with its constant held,
    the covariance C_j; smoothness Λ_j then gives (I + Λ_j C_j)⁻¹m_j, and the constants
    move by what that leaves unexplained. One factorisation of order m for each Λ_j > 0.
    """
    require_memory(
        32.0 * len(X) ** 2, f"{len(X)} new inputs at once", "explain fewer together"
    )
    queries = weighed.model.state.queries(X)
    mean = weighed.before(queries).mean.copy()
    slope = np.broadcast_to(weighed.slope(queries), mean.shape)
    pull, moved = np.broadcast_to(weighed.pull, mean.shape[1:]), slope.copy()
    push, information = np.zeros(mean.shape[1]), np.zeros(mean.shape[1])
    for j in np.flatnonzero(pull):
        system = pull[j] * weighed.covariance(X, queries, int(j))
        system[np.diag_indices_from(system)] += 1.0
        both = np.column_stack([mean[:, j], slope[:, j]])
        solved = la.solve(system, both, assume_a="pos")
        push[j], information[j] = pull[j] * (slope[:, j] @ solved)
        mean[:, j], moved[:, j] = solved.T
    step = weighed.model.mean.step(-push, information, weighed.constants)
    return np.asarray(mean + moved * step)

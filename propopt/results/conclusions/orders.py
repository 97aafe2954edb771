"""The order of the features of one row: what it costs to overturn, and what is certain.

The size of w_d is above that of w_e in every V of a convex set around W just if both

    s_d v_d − s_e v_e > 0   and   s_d v_d + s_e v_e > 0

hold there, for the signs s of W: two linear forms, whose least values are known. In the
order of values there is one, v_d − v_e.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Positions, Truths
from propopt.results.conclusions.near_optimal import NearOptimal
from propopt.results.conclusions.target_scatter import TargetScatter


OrderBy: TypeAlias = Literal["size", "value"]
"""Features by |w|, the largest first, or by w."""

_LENGTH = np.sqrt(2.0)  # of a form with two entries ±1


@final
@dataclass(frozen=True, eq=False)
class RowOrder:
    """All pairs of the features that are compared in one row.

    Parameters
    ----------
    prices : array (d, d)
        The least rise of the objective at which feature d is no longer above e; zero
        where it is not.
    above : array of bool (d, d)
        Whether d is above e in every near-optimal explanation, with the target's error.
    """

    prices: Array
    above: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        w: Array,
        row: int,
        features: Positions,
        near: NearOptimal,
        beta: float,
        scatter: TargetScatter,
        by: OrderBy,
    ) -> RowOrder:
        """The pairs of these features of a row, whose attributions are w (d,)."""
        signs = np.ones(len(w)) if by == "value" else np.where(w < 0.0, -1.0, 1.0)
        keys = signs * w
        block = near.hessian.block_of(row, features) * np.outer(signs, signs)
        own = np.diag(block)
        sums = own[:, None] + own
        pairs = [(keys[:, None] - keys, np.maximum(sums - 2.0 * block, 0.0))]
        errors = scatter.of_pairs(row, features, signs)
        if by == "size":
            pairs.append((keys[:, None] + keys, np.maximum(sums + 2.0 * block, 0.0)))
        prices, above = np.full(block.shape, np.inf), np.ones(block.shape, dtype=bool)
        for (forms, variances), error in zip(pairs, errors, strict=False):
            ahead = np.maximum(forms, 0.0)
            prices = np.minimum(prices, near.price(ahead, variances, _LENGTH))
            above &= forms > near.reach(beta, variances, _LENGTH) + error
        return cls(prices, above)

    @property
    def best_ranks(self) -> NDArray[np.int64]:
        """One more than the features that are certainly above, shape (d,)."""
        return 1 + np.count_nonzero(self.above, axis=0)

    @property
    def worst_ranks(self) -> NDArray[np.int64]:
        """All but the features that are certainly below, shape (d,)."""
        return len(self.above) - np.count_nonzero(self.above, axis=1)


def in_order(W: Array, by: OrderBy, present: Truths) -> NDArray[np.intp]:
    """Positions of the features of each row, the largest first, absent ones last."""
    keys = np.where(present, np.abs(W) if by == "size" else W, -np.inf)
    return np.argsort(-keys, axis=1, kind="stable")

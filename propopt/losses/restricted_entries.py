"""What is left of W where losses over single entries cost nothing.

A loss over features that points share is zero where W is constant on each part of its
entries, whatever the others are. What other losses leave, constants on parts of points
and of features, are parts of entries too, and of both together those parts are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np

from propopt._typing import Attributions, Sparse
from propopt.linear.components import Components
from propopt.losses.base import PropertyLoss
from propopt.losses.restricted import Restriction, basis_of, has_known_zeros
from propopt.maps import OverEntries


@final
@dataclass(frozen=True, eq=False)
class EntryRestriction:
    """The attributions W that are constant on parts of their entries, or a single W.

    Parameters
    ----------
    entries : Components
        Parts of all N·D entries, row by row.
    only : array (N, D), optional
        The only W, where there is no other.
    """

    entries: Components
    only: Attributions | None = None

    @classmethod
    def to_zero(
        cls, losses: Sequence[PropertyLoss], shape: tuple[int, int]
    ) -> EntryRestriction | None:
        """The attributions that cost nothing; None where they are not known.

        Raises
        ------
        Infeasible
            If two of the losses leave one W each, and not the same.
        """
        coupled = [loss for loss in losses if isinstance(loss.map, OverEntries)]
        others = [loss for loss in losses if loss not in coupled]
        if not all(map(has_known_zeros, others)):
            return None
        left = Restriction.to_zero(others, shape) if others else None
        if left is not None and left.only is not None:
            fits = all(loss.value_at(left.only) == 0.0 for loss in coupled)
            return cls(left.entries, left.only) if fits else None
        known = [] if left is None else [left.entries]
        return cls(Components.joined([*known, *map(_parts, coupled)]))

    @property
    def basis(self) -> Sparse:
        """Orthonormal columns (N·D, p) that span row-major W."""
        return basis_of(self.entries)

    def least_distance(self, T: Attributions) -> float:
        """Min ‖W − T‖²: each part has the mean of T there."""
        return float((self.entries.centred(T.reshape(-1, 1)) ** 2).sum())


def _parts(loss: PropertyLoss) -> Components:
    """Those of all entries; an entry that is not coupled is one by itself."""
    coupled = loss.map
    assert isinstance(coupled, OverEntries), "see to_zero"
    labels = coupled.components.count + np.arange(prod(coupled.shape))
    labels[coupled.entries] = coupled.components.labels
    return Components(np.unique(labels, return_inverse=True)[1])

"""Attributions in other coordinates: per scale of the features, summed over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.errors import InvalidInput
from propopt.tables.alignment import aligned_vector
from propopt.tables.names import Labels, read_groups


EFFECTS: Final = "effects"
"""The detail that says which attributions are effects, in units of the output."""


def sizes_for(
    scale: Any, shape: tuple[int, int], labels: Labels, details: Mapping[str, Array]
) -> Array:
    """What each slope is multiplied by, shape (D,) or (N, D); effects by one.

    Raises
    ------
    InvalidInput
        If the scale is not one number for each feature.
    """
    sizes = aligned_vector(scale, labels.features, "scale", "the explanation")
    if sizes.shape != shape[1:]:
        raise InvalidInput(
            f"scale: expected {shape[1]} numbers, one for each feature, got "
            f"{len(sizes)}"
        )
    return np.where(details[EFFECTS], 1.0, sizes) if EFFECTS in details else sizes


def sums_over(
    groups: Mapping[str, Sequence[str]], W: Attributions, labels: Labels
) -> tuple[Attributions, Labels]:
    """Signed sums over each group of features, and the names of what is left.

    Raises
    ------
    InvalidInput
        If the groups are not such as features can be in.
    """
    names = read_groups(groups, labels.feature_names(W.shape[1]))
    place = {name: j for j, name in enumerate(dict.fromkeys(names))}
    sums = np.zeros((len(W), len(place)))
    np.add.at(sums.T, [place[name] for name in names], W.T)
    return sums, Labels(points=labels.points, features=tuple(place))

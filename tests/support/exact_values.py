"""Values that are the same to the last bit and type."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from propopt.base.codecs import codecs_of


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit and type, in all that files keep; NaN equal to itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        same_form = (one.dtype, one.shape) == (other.dtype, other.shape)
        return same_form and one.tobytes() == other.tobytes()
    if dataclasses.is_dataclass(one):
        keys = codecs_of(type(one))
        return all(same(getattr(one, k), getattr(other, k)) for k in keys)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (isinstance(one, float) and math.isnan(one + other))

"""The arrays of an explanation: read-only, and copied where someone could write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from propopt._typing import Array, Attributions
from propopt.checks import as_floats, is_sealed, read_array, sealed
from propopt.errors import InvalidInput


def own_attributions(W: Any) -> Attributions:
    """Finite numbers (N, D).

    Raises
    ------
    InvalidInput
        If they are no such table.
    """
    if is_sealed(W) and W.ndim == 2 and W.dtype == np.float64:
        return W
    return read_array(W, "attributions", ndim=2)


def own_standard_errors(errors: Any, shape: tuple[int, int]) -> Array | None:
    """None, or numbers (N, D) that are not negative; not finite where none is known.

    Raises
    ------
    InvalidInput
        If they are no such table.
    """
    if errors is None:
        return None
    own = is_sealed(errors) and errors.dtype == np.float64
    array = errors if own else as_floats(errors, "standard_errors")
    if array.shape != shape:
        raise InvalidInput(
            f"standard_errors: expected the shape of the attributions, {shape}, got "
            f"{array.shape}"
        )
    if (array < 0.0).any():
        raise InvalidInput("standard_errors: expected numbers >= 0")
    return sealed(array)


def own_details(details: Mapping[str, Array]) -> Mapping[str, Array]:
    """Arrays of any kind by name."""
    if all(map(is_sealed, details.values())):
        return details
    return {
        name: array if is_sealed(array) else sealed(np.array(array))
        for name, array in details.items()
    }


def seal_unpickled(state: Mapping[str, Any]) -> None:
    """Make arrays read-only that come out of a pickle, as from a worker."""
    arrays = state["attributions"], state["standard_errors"]
    for array in (*arrays, *state["details"].values()):
        if isinstance(array, np.ndarray):
            array.setflags(write=False)

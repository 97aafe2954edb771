"""Parts of an output as slopes, where that is defined."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from propopt._typing import Array
from propopt.checks import read_array, sealed
from propopt.errors import InvalidInput
from propopt.tables.alignment import aligned, aligned_vector


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


_NEGLIGIBLE = 1e-8
"""|x − r| ≤ this · max(|x|, |r|) counts as x = r: the quotient is not defined."""


def slopes_of_contributions(
    explanation: Explanation, X: Any, reference: Any
) -> Explanation:
    """Contributions as slopes, φ_j/(x_j − r_j), which compare with gradients.

    Parameters
    ----------
    X : array or DataFrame (N, D)
        The points, all of numbers; those with names are put in order.
    reference : array or Series (D,)
        r, such as the mean of the background that a feature is replaced by.

    Returns
    -------
    Explanation
        In units ``"gradient"``. Where x_j equals r_j to rounding no slope is defined:
        the attribution is 0, and counted by row in ``details["undefined"]`` (N,).

    Raises
    ------
    InvalidInput
        If the units are not ``"output"``, or X or r have another shape.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> parts = po.Explanation(
    ...     attributions=np.array([[6.0, 1.0]]), method="shap", units="output"
    ... )
    >>> slopes = parts.to_slopes(X=[[3.0, 4.0]], reference=[1.0, 4.0])
    >>> slopes.attributions, slopes.details["undefined"]
    (array([[3., 0.]]), array([1.]))
    """
    if explanation.units != "output":
        raise InvalidInput(
            f"to_slopes: expected contributions, in units 'output', got "
            f"{explanation.units!r}"
        )
    points = aligned(X, explanation.labels, "X", "the explanation")
    features = explanation.labels.features
    origin = aligned_vector(reference, features, "reference", "the explanation")
    _check(points, origin, explanation.shape)
    steps = points - origin
    size = np.maximum(np.abs(points), np.abs(origin))
    undefined = np.abs(steps) <= _NEGLIGIBLE * size
    slopes = np.zeros(explanation.shape)
    np.divide(explanation.attributions, steps, out=slopes, where=~undefined)
    return dataclasses.replace(
        explanation,
        attributions=sealed(read_array(slopes, "slopes", ndim=2)),
        units="gradient",
        losses={},
        weights={},
        certificate=None,
        multipliers={},
        target=None,
        program=None,
        standard_errors=None,
        details={"undefined": undefined.sum(axis=1).astype(float)},
    )


def _check(points: Array, origin: Array, shape: tuple[int, int]) -> None:
    for name, array, expected in (
        ("X", points, shape),
        ("reference", origin, shape[1:]),
    ):
        if array.shape != expected:
            raise InvalidInput(f"{name}: expected shape {expected}, got {array.shape}")

"""Explanations with the fields of ``shap.Explanation``, also without that package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Final, final

import numpy as np

from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.suggestions import suggests_arguments
from propopt.tables.frames import listed, position_of


_AXES_OF: Final = {
    "base_values": ("rows", "outputs"),
    "data": ("rows", "features"),
    "display_data": ("rows", "features"),
    "error_std": ("rows", "features", "outputs"),
    "feature_names": ("features",),
    "output_names": ("outputs",),
}
"""The axes of the fields beside ``values``."""


@final
@suggests_arguments
@dataclass(eq=False)
class Explanation:
    """Shapley values of rows with their base, names and data.

    It has the fields and the indices of ``shap.Explanation``, and is returned where
    that package is not installed.

    Parameters
    ----------
    values : array (N, D), (N, D, K), (N, D, D) or (N, D, D, K)
        Shapley values, or interactions, of K outputs.
    base_values : array (N,) or (N, K)
        The value without any feature.
    data : array (N, D), optional
        The explained rows.
    feature_names, output_names : sequence of str, optional
        The names of columns and outputs.
    display_data : array (N, D), optional
        The rows as they are shown.
    error_std : array (N, D) or (N, D, K), optional
        Standard errors of sampled values.
    compute_time : float, optional
        Seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.shap import Explanation
    >>> values = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> whole = Explanation(values, np.zeros(2), feature_names=["age", "bmi"])
    >>> whole[:, "bmi"].values, whole[1].values, whole.shape
    (array([2., 5.]), array([3., 5.]), (2, 2))
    """

    values: Any
    base_values: Any
    data: Any = None
    display_data: Any = None
    feature_names: Any = None
    output_names: Any = None
    error_std: Any = None
    compute_time: float | None = None
    # the meaning of each axis of the values; by default from the shapes
    axes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.axes:
            return
        n_outputs = np.ndim(self.base_values) - 1
        n_features = np.ndim(self.values) - 1 - n_outputs
        self.axes = "rows", *["features"] * n_features, *["outputs"] * n_outputs

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return np.shape(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, item: Any) -> Explanation:
        """Rows, columns and outputs, by positions, slices or names."""
        keys = list(item) if isinstance(item, tuple) else [item]
        at = [key is Ellipsis for key in [*keys, Ellipsis]].index(True)
        given = len(keys[:at] + keys[at + 1 :])
        keys[at : at + 1] = [slice(None)] * (len(self.axes) - given)
        if len(keys) > len(self.axes):
            raise InvalidInput(
                f"Explanation: it has the axes {listed(self.axes)}, got {len(keys)} "
                "indices"
            )
        positions = list(map(self._position, self.axes, keys))
        # of the two axes of pairs the first one
        chosen = dict(zip(self.axes[::-1], positions[::-1], strict=True))
        changed = {
            name: _selected(field, [chosen[a] for a in axes if a in chosen])
            for name, axes in _AXES_OF.items()
            if (field := getattr(self, name)) is not None
        }
        rest = [a for a, k in zip(self.axes, positions, strict=True) if not _is_one(k)]
        values = _selected(self.values, positions)
        return replace(self, values=values, axes=tuple(rest), **changed)

    def _position(self, axis: str, key: Any) -> Any:
        """The position of a name; other keys are returned unchanged."""
        if not isinstance(key, str):
            return key
        names = {"features": self.feature_names, "outputs": self.output_names}.get(axis)
        named = [] if names is None else list(names)
        return position_of(key, f"Explanation: {axis}", named)


def _is_one(key: Any) -> bool:
    return isinstance(key, int | np.integer)


def _selected(array: Any, keys: Sequence[Any]) -> Any:
    """An array or a list by the keys of its first axes; the last is taken first."""
    for axis in reversed(range(len(keys))):
        if isinstance(array, list):
            array = np.asarray(array, dtype=object)
        array = array[(*[slice(None)] * axis, keys[axis])]
    return array


def as_explanation(**given: Any) -> Any:
    """A ``shap.Explanation``; an :class:`Explanation` if the package is missing."""
    if find_spec("shap") is None:
        return Explanation(**given)
    return require("shap").Explanation(**given)

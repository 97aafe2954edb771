"""What is observed at the inputs: gradients, given or computed, or other targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from propopt._typing import Attributions
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.tables.alignment import aligned, read_attributions
from propopt.tables.frames import is_frame
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """What a fit is conditioned on.

    Parameters
    ----------
    values : array (N, T)
        In the order of X.
    labels : Labels
        The names of the rows, and of the T things that have attributions.
    """

    values: Attributions
    labels: Labels


def read_targets(
    y: object,
    gradients: object,
    function: object,
    X: Any,
    labels: Labels,
    shape: tuple[int, int],
) -> Targets:
    """Targets from ``y``, ``gradients`` or ``function``, whichever there is.

    ``shape`` is (N, D): gradients have it, and ``y`` may have other columns.
    """
    _require_one(y, gradients, function)
    if y is None:
        source = gradients if function is None else read_function(function)
        values = read_gradients(source, X, labels, shape)
    else:
        labels = _labels_of(y, labels, shape)
        values = aligned(y, labels, "gradients", "X")
    if len(values) != shape[0]:
        _refuse_shape(values, shape)
    return Targets(values=values, labels=labels)


def read_gradients(
    source: object, X: Any, labels: Labels, shape: tuple[int, ...]
) -> Attributions:
    """Gradients at X, given or from a function; names are put in the order of X."""
    if isinstance(source, Function):
        source = source.gradient(X if is_frame(X, "X") else np.asarray(X))
    G = aligned(source, labels, "gradients", "X")
    if G.shape != shape:
        _refuse_shape(G, shape)
    return G


def _labels_of(y: object, labels: Labels, shape: tuple[int, int]) -> Labels:
    """Names of rows and of targets: those of X, unless y is of other things.

    Other things differ in number from the columns of X, and none is called like one.
    Columns that are only counted have no names.
    """
    values, own = read_attributions(y, "gradients")
    names = None if own.columns == tuple(range(values.shape[1])) else own.features
    shared = set(names or ()) & set(labels.features or ())
    if values.shape[1] == shape[1] or shared:
        return labels
    return replace(labels, features=names, columns=None)


def _require_one(y: object, gradients: object, function: object) -> None:
    n_given = sum(source is not None for source in (y, gradients, function))
    if n_given == 0:  # the first words are those of scikit-learn
        raise InvalidInput(
            "fit: requires y to be passed, but the target y is None; give y, or either "
            "gradients or function="
        )
    if n_given > 1:
        raise InvalidInput(
            "fit: give y, or either gradients or function=; only one of them"
        )


def _refuse_shape(G: Attributions, shape: tuple[int, ...]) -> None:
    raise InvalidInput(f"gradients: expected shape {shape} as X, got {G.shape}")

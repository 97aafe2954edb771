"""Bins of an explainer of the ``lime`` package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from propopt.errors import InvalidInput, Refused
from propopt.lime.bins.codes import CodeBins
from propopt.lime.bins.numbers import NumberBins


_DISTANCES: Final = np.array([0.5, 1.0, 2.0])


def read_explainer_bins(explainer: Any) -> list[NumberBins | CodeBins]:
    """The bins of each column of a ``lime.lime_tabular.LimeTabularExplainer``.

    Raises
    ------
    InvalidInput
        If it is no such explainer.
    Refused
        If it does not put numbers into bins.
    """
    if not hasattr(explainer, "discretizer") or not hasattr(explainer, "feature_names"):
        raise InvalidInput(
            "explainer: expected a lime.lime_tabular.LimeTabularExplainer, got "
            f"{type(explainer).__name__}"
        )
    discretizer = explainer.discretizer
    if discretizer is None:
        raise Refused(
            "explainer: it has discretize_continuous=False, which draws normal numbers "
            "and regresses on them, without bins; what it tends to is not read"
        )
    return [
        _numbers(explainer, j)
        if j in discretizer.lambdas
        else _codes(explainer, j, explainer.categorical_names.get(j))
        for j in range(len(explainer.feature_names))
    ]


def read_explainer_width(explainer: Any) -> float:
    """The kernel width of an explainer.

    Raises
    ------
    Refused
        If its kernel is another function than the package's own.
    """
    kernel = explainer.base.kernel_fn
    width = float(kernel.keywords["kernel_width"])
    expected = np.exp(-0.5 * (_DISTANCES / width) ** 2)
    if not np.allclose(kernel(_DISTANCES), expected, rtol=1e-12, atol=0.0):
        raise Refused(
            "explainer: it has a kernel of its own; only exp(−d² / (2 ν²)) is a "
            "product of factors of one column each"
        )
    return width


def _numbers(explainer: Any, j: int) -> NumberBins:
    found = explainer.discretizer
    edges = np.asarray(found.lambdas[j].__defaults__[0], np.float64)
    low, high, mean, sd = (
        np.asarray(part[j], np.float64)
        for part in (found.mins, found.maxs, found.means, found.stds)
    )
    if not len(low) == len(high) == len(mean) == len(sd) == len(edges) + 1:
        raise InvalidInput(
            f"explainer: column {explainer.feature_names[j]!r} has {len(edges)} edges "
            f"and statistics of {len(mean)} bins"
        )
    frequencies = np.zeros(len(mean))
    places = np.asarray(explainer.feature_values[j]).astype(np.intp)
    frequencies[places] = explainer.feature_frequencies[j]
    ends = edges[np.isfinite(edges)]  # above ∞ there is no bin
    kept = (part[: len(ends) + 1] for part in (low, high, mean, sd, frequencies))
    return NumberBins.of_moments(ends, *kept)


def _codes(explainer: Any, j: int, names: Sequence[str] | None) -> CodeBins:
    values = np.asarray(explainer.feature_values[j], np.float64)
    order = np.argsort(values)
    values = values[order]
    frequencies = np.asarray(explainer.feature_frequencies[j], np.float64)[order]
    words = (
        tuple(f"{value:.17g}" for value in values)
        if names is None
        else tuple(str(names[int(value)]) for value in values)
    )
    return CodeBins(values, frequencies, words)

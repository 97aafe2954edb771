"""Bins of an explainer of the ``lime`` package, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput, Refused
from propopt.extras import require
from propopt.lime.bins.codes import CodeBins
from propopt.lime.bins.numbers import NumberBins
from propopt.structures.products import Pieces


_STATISTICS: Final = (
    "bins",
    "means",
    "stds",
    "mins",
    "maxs",
    "feature_values",
    "feature_frequencies",
)

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


class DrawnBins(NamedTuple):
    """What the package needs to know of the bins of one column."""

    pieces: Pieces
    """The law of each."""

    shares: Array
    edges: Array | None
    """Where bins of numbers end; None for categories."""

    words: tuple[str, ...]


def package_explainer(
    bins: Sequence[DrawnBins], names: Sequence[str], **settings: Any
) -> Any:
    """An explainer of the package with these bins (D,) of columns of these names.

    Parameters
    ----------
    bins, names : sequences (D,)
        The columns.
    **settings
        Of ``lime.lime_tabular.LimeTabularExplainer``.

    Raises
    ------
    MissingExtra
        If ``lime`` is not installed.
    """
    coded = [j for j, column in enumerate(bins) if column.edges is None]
    drawn = [column.pieces.mean[column.shares > 0.0][0] for column in bins]
    module = require("lime.lime_tabular")
    return module.LimeTabularExplainer(
        np.array([drawn, drawn]),  # the package reads nothing else of its data
        feature_names=list(names),
        categorical_features=coded,
        categorical_names={j: _category_names(bins[j]) for j in coded},
        training_data_stats=_statistics(bins),
        **settings,
    )


def _category_names(bins: DrawnBins) -> dict[int, str]:
    codes = bins.pieces.mean.astype(int).tolist()
    words = (word.removeprefix("= ") for word in bins.words)
    return dict(zip(codes, words, strict=True))


def _statistics(bins: Sequence[DrawnBins]) -> dict[str, dict[int, Any]]:
    """What the package takes as ``training_data_stats``, with its key ``bins``.

    The package draws (low − mean) / sd where both ends of a bin are equal, which is the
    value where mean = 0 and sd = 1. It needs an edge in each column: ∞ where there is
    none, with a second bin that is never drawn.
    """
    stats: dict[str, dict[int, Any]] = {name: {} for name in _STATISTICS}
    for j, (laws, share, ends, _) in enumerate(bins):
        drawn = share > 0.0
        stats["feature_frequencies"][j] = share[drawn].tolist()
        if ends is None:
            stats["feature_values"][j] = laws.mean[drawn].tolist()
            continue
        stats["feature_values"][j] = np.flatnonzero(drawn).tolist()
        stats["bins"][j] = ends.tolist() if len(ends) > 0 else [np.inf]
        one = laws.single
        columns = {
            "means": np.where(one, 0.0, laws.mean),
            "stds": np.where(one, 1.0, laws.sd),
            "mins": np.where(one, laws.mean, laws.low),
            "maxs": np.where(one, laws.mean, laws.high),
        }
        spare = [1.0] if len(ends) == 0 else []
        for name, column in columns.items():
            stats[name][j] = [*column.tolist(), *spare]
    return stats

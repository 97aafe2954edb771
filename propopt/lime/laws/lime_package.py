"""Explainers of the ``lime`` package that draw from bins of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from propopt.errors import Refused
from propopt.extras import require
from propopt.lime.laws.binned import BinnedColumn
from propopt.tables.names import listed


_STATISTICS: Final = (
    "bins",
    "means",
    "stds",
    "mins",
    "maxs",
    "feature_values",
    "feature_frequencies",
)


def package_explainer(
    columns: Sequence[BinnedColumn], names: Sequence[str], **settings: Any
) -> Any:
    """An explainer of the package with the bins of columns (D,) of these names.

    Parameters
    ----------
    columns, names : sequences (D,)
        The columns.
    **settings
        Of ``lime.lime_tabular.LimeTabularExplainer``.

    Raises
    ------
    Refused
        If numbers are missing, or columns have widths of their own.
    MissingExtra
        If ``lime`` is not installed.
    """
    _check(columns, names)
    coded = [j for j, column in enumerate(columns) if column.coded]
    drawn = [column.pieces.mean[column.shares > 0.0][0] for column in columns]
    module = require("lime.lime_tabular")
    return module.LimeTabularExplainer(
        np.array([drawn, drawn]),  # the package reads nothing else of its data
        feature_names=list(names),
        categorical_features=coded,
        categorical_names={j: _category_names(columns[j]) for j in coded},
        training_data_stats=_statistics(columns),
        **settings,
    )


def _check(columns: Sequence[BinnedColumn], names: Sequence[str]) -> None:
    """Refuse what the package does not have."""
    named = list(zip(names, columns, strict=True))
    missing = [name for name, column in named if np.isnan(column.pieces.mean).any()]
    if missing:
        raise Refused(
            f"to_lime: numbers are missing in {listed(missing)}, and the package "
            "has no bin for them"
        )
    own = [name for name, column in named if column.scale != 1.0]
    if own:
        raise Refused(
            f"to_lime: {listed(own)} have kernel widths of their own, and the "
            "package has one for all columns"
        )


def _category_names(column: BinnedColumn) -> dict[int, str]:
    codes = column.pieces.mean.astype(int).tolist()
    words = (word.removeprefix("= ") for word in column.bins)
    return dict(zip(codes, words, strict=True))


def _statistics(columns: Sequence[BinnedColumn]) -> dict[str, dict[int, Any]]:
    """What the package takes as ``training_data_stats``, with its key ``bins``.

    The package draws (low − mean) / sd where both ends of a bin are equal, which is the
    value where mean = 0 and sd = 1. It needs an edge in each column: ∞ where there is
    none, with a second bin that is never drawn.
    """
    stats: dict[str, dict[int, Any]] = {name: {} for name in _STATISTICS}
    for j, column in enumerate(columns):
        laws, edges, drawn = column.pieces, column.edges, column.shares > 0.0
        stats["feature_frequencies"][j] = column.shares[drawn].tolist()
        if column.coded:
            stats["feature_values"][j] = laws.mean[drawn].tolist()
            continue
        stats["feature_values"][j] = np.flatnonzero(drawn).tolist()
        stats["bins"][j] = edges.tolist() if len(edges) > 0 else [np.inf]
        one = laws.single
        moments = {
            "means": np.where(one, 0.0, laws.mean),
            "stds": np.where(one, 1.0, laws.sd),
            "mins": np.where(one, laws.mean, laws.low),
            "maxs": np.where(one, laws.mean, laws.high),
        }
        spare = [1.0] if len(edges) == 0 else []
        for name, numbers in moments.items():
            stats[name][j] = [*numbers.tolist(), *spare]
    return stats

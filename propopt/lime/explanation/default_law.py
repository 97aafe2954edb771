"""The law of the package: quartiles of a table, drawn by their frequencies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from propopt._typing import Values
from propopt.lime.laws import TabularLaw
from propopt.lime.laws.binned import BinnedColumn
from propopt.sampling.laws import Reference
from propopt.structures.products import Pieces
from propopt.tables.columns import Coded
from propopt.tables.schema import TableSchema


def default_law(reference: Reference, schema: TableSchema | None) -> TabularLaw:
    """The law of encoded rows."""
    columns = [None] * reference.points.shape[1] if schema is None else schema.columns
    bins = tuple(
        _coded(values, column) if isinstance(column, Coded) else _numeric(values)
        for values, column in zip(reference.points.T, columns, strict=True)
    )
    return TabularLaw.of(bins, labels=reference.labels.of_columns())


def _coded(codes: Values, column: Coded) -> BinnedColumn:
    n = len(column.frequencies)
    shares = np.bincount(codes.astype(np.intp), minlength=n) / len(codes)
    pieces = Pieces.of_values(np.arange(n, dtype=float))
    words = tuple(str(name) for name in column.categories)
    return BinnedColumn(pieces, shares, np.zeros(0), words, coded=True)


def _numeric(values: Values) -> BinnedColumn:
    known = values[~np.isnan(values)]
    edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75]))
    places = np.searchsorted(edges, known, side="left")
    parts = [known[places == b] for b in range(len(edges) + 1)]
    edges = np.array([e for e, part in zip(edges, parts[1:], strict=True) if len(part)])
    parts = [part for part in parts if len(part)]
    single = np.array([np.ptp(part) == 0.0 for part in parts])
    mean, sd = (np.array([g(part) for part in parts]) for g in (np.mean, np.std))
    low, high = (np.array([g(part) for part in parts]) for g in (np.min, np.max))
    low[1:] = np.maximum(low[1:], edges)
    shares = np.array([len(part) for part in parts], float)
    words = _words(edges)
    missing = -1
    if len(known) < len(values):
        missing = len(parts)
        shares = np.append(shares, len(values) - len(known))
        single, mean = np.append(single, True), np.append(mean, np.nan)
        sd, low, high = (np.append(part, 0.0) for part in (sd, low, high))
        words = (*words, "missing")
    pieces = Pieces(single, mean, sd, low, high)
    return BinnedColumn(pieces, shares / shares.sum(), edges, words, missing)


def _words(edges: Values) -> tuple[str, ...]:
    if len(edges) == 0:
        return ("any",)
    between = [f"in ({a:.6g}, {b:.6g}]" for a, b in pairwise(edges.tolist())]
    return (f"≤ {edges[0]:.6g}", *between, f"> {edges[-1]:.6g}")

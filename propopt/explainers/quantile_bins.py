"""Bins of a table: what tabular LIME draws its samples from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.explainers.request import Request
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.tabular import TabularLaw
from propopt.structures.products import Pieces
from propopt.tables.columns import Coded


def law_of_rows(
    rows: Points,
    request: Request,
    n_bins: int,
    weights: str,
    kernel_width: float | None,
) -> TabularLaw:
    """The bins of the columns of rows (B, D)."""
    schema = request.function.schema
    known = [None] * rows.shape[1] if schema is None else list(schema.columns)
    columns = [
        _of_codes(values, len(column.categories), weights)
        if isinstance(column, Coded)
        else _of_numbers(values, n_bins, weights)
        for column, values in zip(known, rows.T, strict=True)
    ]
    return TabularLaw.of(tuple(columns), kernel_width, request.labels.of_columns())


def _of_codes(codes: Array, n_categories: int, weights: str) -> BinnedColumn:
    n_codes = max(n_categories, int(codes.max()) + 1)
    pieces = Pieces.of_values(np.arange(n_codes, dtype=float))
    counts = np.bincount(codes.astype(np.intp), minlength=n_codes)
    names = tuple(map(str, range(n_codes)))
    return BinnedColumn(
        pieces, _shares(counts, weights), np.empty(0), names, coded=True
    )


def _of_numbers(values: Array, n_bins: int, weights: str) -> BinnedColumn:
    known = values[~np.isnan(values)]
    inner = np.unique(np.quantile(known, np.arange(1, n_bins) / n_bins))
    bins = np.searchsorted(inner, known, side="left")
    low, high = np.append(known.min(), inner), np.append(inner, known.max())
    members = [known[bins == b] for b in range(len(low))]
    counts = np.array([len(own) for own in members])
    mean = np.array([own.mean() if len(own) else np.nan for own in members])
    sd = np.array([own.std() if len(own) else 0.0 for own in members])
    mean = np.where(counts == 0, high, mean)
    single = ~(sd > 0.0)
    missing = len(values) - len(known)
    if missing > 0:
        single, mean = np.append(single, True), np.append(mean, np.nan)
        sd, low, high = (np.append(part, 0.0) for part in (sd, low, high))
        counts = np.append(counts, missing)
    pieces = Pieces(single, mean, sd, low, high)
    names = tuple(map(str, range(len(mean))))
    place = len(mean) - 1 if missing else -1
    return BinnedColumn(pieces, _shares(counts, weights), inner, names, place)


def _shares(counts: NDArray[np.intp], weights: str) -> Array:
    if weights == "uniform":
        return np.full(len(counts), 1.0 / len(counts))
    return np.asarray(counts / counts.sum())

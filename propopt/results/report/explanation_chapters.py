"""Chapters of an explanation: rows with similar rows, every value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from propopt.base.document import (
    Chapter,
    Table,
    rows_on_page,
)
from propopt.base.row_sample import RowSample
from propopt.proofs.optimum import Optimum, is_sampled, of_rows
from propopt.results.report.explorer import Explorer, FrontPath
from propopt.results.report.neighbours import WORST_PAIRS, Neighbours
from propopt.results.report.review_sheet import ReviewSheet


def explanation_chapters(best: Optimum) -> list[Chapter]:
    """All chapters of an explanation on its page; the card of one row has all of it."""
    if best.shape[0] == 1:
        return []
    return [*rows_and_pairs(best), *_every_value(best)]


def _every_value(best: Optimum) -> Iterator[Chapter]:
    """Every value with its target value, and every row with base and prediction."""
    base = best.base_value
    prediction = best.prediction
    target = best.contributions
    if (
        base is None
        or prediction is None
        or target is None
        or best.units != "output"
        or not all(np.isfinite(x).all() for x in (base, prediction, target))
    ):
        sample = RowSample.of(best.shape[0], rows_on_page(best.shape[1]))
        frame = of_rows(best, sample.rows).to_frame().rename_axis(columns="feature")
        caption = f"{sample.in_words()}; the CSV file has all"
        shown = Table(frame, "" if sample.is_whole else caption)
        yield Chapter("Attributions", [shown])
        return
    yield from ReviewSheet(
        result=best,
        noun="optimized",
        unit=best.units_in_words,
        exact=target,
        other="sampled" if is_sampled(best) else "exact",
        base=base,
        prediction=prediction,
    ).chapters()


def rows_and_pairs(
    best: Optimum, front_path: FrontPath | None = None
) -> Iterator[Chapter]:
    """The interactive chapter, and the pairs of similar rows that differ most."""
    neighbours = Neighbours.of(best)
    pairs = None
    first = list[int]()
    if neighbours is not None and best.shape[0] > 1:
        pairs, first = neighbours.worst(best)
    explorer = Explorer(
        title="Two similar rows" if neighbours else "One row",
        best=best,
        neighbours=neighbours,
        front_path=front_path,
        first_rows=first,
    )
    yield explorer.chapter()
    if pairs is not None and neighbours is not None:
        shown = min(WORST_PAIRS, len(pairs))
        caption = f"{shown} of {len(neighbours.edges):,} pairs"
        yield Chapter("Similar rows that differ most", [Table(pairs, caption)])

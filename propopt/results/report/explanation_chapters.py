"""Chapters of an explanation: rows beside similar ones, reasons, every value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.document import Chapter, Table, table_chapter
from propopt.base.text import plural
from propopt.proofs.optimum import Optimum, is_sampled
from propopt.results.reasons import Reasons
from propopt.results.report.explorer import Explorer, FrontPath
from propopt.results.report.neighbours import WORST_PAIRS, Neighbours
from propopt.results.report.review_sheet import ReviewSheet


def explanation_chapters(best: Optimum) -> list[Chapter]:
    """All chapters of an explanation that stands by itself."""
    return [
        *rows_and_pairs(best, Neighbours.of(best)),
        *_reasons(best),
        *_every_value(best),
    ]


def _every_value(best: Optimum) -> Iterator[Chapter]:
    """Rows with base and prediction, and values beside those that they are near to."""
    base, prediction, known = best.base_value, best.prediction, best.contributions
    ends = base, prediction, known
    if (
        base is None
        or prediction is None
        or not (best.units == "output" and all(map(_is_known, ends)))
    ):
        words = f"{best.units_in_words}."
        yield table_chapter("Attributions", best.to_frame(), words)
        return
    yield from ReviewSheet(
        result=best,
        noun="optimized",
        unit=best.units_in_words,
        exact=known,
        other="sampled" if is_sampled(best) else "exact",
        base=base,
        prediction=prediction,
    ).chapters()


def _is_known(array: Array | None) -> bool:
    return array is not None and bool(np.isfinite(array).all())


def _reasons(best: Optimum) -> Iterator[Chapter]:
    """Reasons of the first rows, for contributions."""
    if best.units != "output":
        return
    N, shown = best.shape[0], min(best.shape[0], _ROWS_WITH_REASONS)
    found = Reasons.of(best, rows=range(shown)).document()
    lead = f"Reasons of the first {shown} of {plural(N, 'row')}." if shown < N else ""
    blocks = [*found.trust, *found.blocks]
    yield Chapter(found.title, blocks, lead)
    yield from found.chapters()


_ROWS_WITH_REASONS: Final = 500


def rows_and_pairs(
    best: Optimum,
    neighbours: Neighbours | None,
    front_path: FrontPath | None = None,
) -> Iterator[Chapter]:
    """The part that moves, and the pairs of similar rows that differ most."""
    pairs, first = None, list[int]()
    if neighbours is not None and best.shape[0] > 1:
        pairs, first = neighbours.worst(best)
    explorer = Explorer(
        title="One row, and the most similar one" if neighbours else "One row",
        lead=f"Numbers are attributions: {best.units_in_words}.",
        best=best,
        neighbours=neighbours,
        front_path=front_path,
        first_rows=first,
    )
    yield explorer.chapter()
    if pairs is not None and neighbours is not None:
        caption = (
            f"The {min(WORST_PAIRS, len(pairs))} worst of {len(neighbours.edges):,} "
            "pairs, and the column in which they differ most."
        )
        lead = "These pairs of similar rows have the least alike explanations."
        title = "Similar rows that differ most"
        yield Chapter(title, [Table(pairs, caption)], lead)

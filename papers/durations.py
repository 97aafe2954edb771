"""What figures take: processor time on record, which is told before they are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from papers.engine.paper import ALL, Paper


_MINUTE = 60.0


@cache
def durations_on_record() -> Mapping[tuple[str, str], float]:
    """Seconds of processor time, by paper and figure; ``"all"`` is a whole paper."""
    table = pd.read_csv(Path(__file__).with_name("durations.csv"))
    rows = table[["paper", "figure", "seconds"]].itertuples(index=False, name=None)
    return {(paper, figure): float(seconds) for paper, figure, seconds in rows}


def durations_in_words(
    chosen: Sequence[tuple[Paper, Sequence[str]]], *, full: bool = False
) -> Iterator[str]:
    """What a choice of figures takes, a line for each paper and one for several.

    Parameters
    ----------
    chosen : sequence of (Paper, sequence of str)
        Papers with names of their figures, which may be ``"all"``.
    full : bool
        Whether they are made at the scale of the paper, which is not on record.
    """
    total = 0.0
    for paper, names in chosen:
        figures = paper.named(names)
        n = f"{len(figures)} figure{'s' if len(figures) > 1 else ''}"
        seconds = None if full else _seconds(paper, figures)
        if seconds is None:
            told = "at the scale of the paper, up to days" if full else "not known"
            yield f"{paper.name}: {n}; how long they take: {told}"
            continue
        total += seconds
        yield f"{paper.name}: {n}, about {_told(seconds)} of processor time"
    if len(chosen) > 1:
        yield f"{len(chosen)} papers: about {_told(total)} of processor time"


def _seconds(paper: Paper, figures: Sequence[str]) -> float | None:
    """Of these figures together, if all are known."""
    known = durations_on_record()
    if len(figures) == len(paper.figures) and (paper.name, ALL) in known:
        return known[paper.name, ALL]
    own = [known.get((paper.name, figure)) for figure in figures]
    return None if None in own else float(sum(filter(None, own)))


def _told(seconds: float) -> str:
    """In seconds up to two minutes, then in minutes."""
    if seconds < 2 * _MINUTE:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / _MINUTE:.0f} minutes"

"""Chapters of an explanation: what matters, what is proved, rows and similar ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.cards import Card
from propopt.base.text import enumerated, in_short
from propopt.proofs.optimum import Optimum, is_sampled, target_in_words
from propopt.results.clear import clear_share
from propopt.results.explanation_card import clear_in_words, largest_features
from propopt.results.reasons import Reasons
from propopt.results.report.chapters import (
    Chapter,
    Headline,
    Statement,
    bars,
    best_possible,
    faithful,
    sentence,
    table_chapter,
)
from propopt.results.report.explorer import Explorer, Trail
from propopt.results.report.neighbours import WORST_PAIRS, Neighbours
from propopt.results.report.signing import Sheet


_FEATURES: Final = 15
"""On a page, those that matter most."""

_FAITHFUL: Final = ("gradient_matching", "function_matching")
"""Losses of faithfulness, whose share is kept."""


def not_said() -> Iterator[Statement]:
    """What nobody should read into attributions."""
    yield Statement(
        "Nothing here says that the model is right, fair or causal.", "not said"
    )
    yield Statement(
        "Attributions describe what the model does, not why the world is so.",
        "not said",
    )


def explanation_chapters(best: Optimum) -> list[Chapter]:
    """All chapters of an explanation that stands by itself."""
    card, clear = best.card(_FEATURES), clear_share(best)
    neighbours = Neighbours.of(best)
    first = Chapter(
        title=card.title,
        lead=f"{best.shape[0]} rows and {best.shape[1]} columns; {card.subtitle}.",
        headlines=list(_headlines(best, *clear)),
        statements=[*proof(best), *settings(best), *not_said()],
        no_words=best.labels.feature_names(best.shape[1]),
    )
    return [
        first,
        features(best, card),
        *rows_and_pairs(best, neighbours),
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
    yield from Sheet(
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


def _reasons(best: Optimum) -> Sequence[Chapter]:
    """Reasons of the first rows, for contributions."""
    if best.units != "output":
        return ()
    N, shown = best.shape[0], min(best.shape[0], _ROWS_WITH_REASONS)
    first, *others = Reasons.of(best, rows=range(shown)).chapters()
    if shown < N:
        words = f"Reasons of the first {shown} of {N:,} rows."
        first = replace(first, lead=words)
    return first, *others


_ROWS_WITH_REASONS: Final = 500


def features(best: Optimum, known: Card | None = None) -> Chapter:
    """The features of the largest attributions, as bars."""
    card = known or best.card(_FEATURES)
    return Chapter(
        title="What matters most",
        lead="Bars are means over the rows: of what raises to the right, of what "
        "lowers to the left."
        if best.shape[0] > 1
        else "Bars to the right raise the output, bars to the left lower it.",
        picture=bars(card.rows, ". ".join(filter(None, [card.subtitle, card.rest]))),
    )


def rows_and_pairs(
    best: Optimum,
    neighbours: Neighbours | None,
    trail: Trail | None = None,
) -> Iterator[Chapter]:
    """The part that moves, and the pairs of similar rows that differ most."""
    pairs, first = None, list[int]()
    if neighbours is not None and best.shape[0] > 1:
        pairs, first = neighbours.worst(best)
    said = (
        []
        if neighbours is None
        else [Statement(f"Who is similar: {neighbours.source}.", "chosen")]
    )
    yield Explorer(
        title="One row, and the most similar one" if neighbours else "One row",
        lead=f"Numbers are attributions: {best.units_in_words}.",
        statements=[*said, *trail_statements(trail)],
        best=best,
        neighbours=neighbours,
        trail=trail,
        first=first,
    )
    if pairs is not None:
        yield Chapter(
            title="Similar rows that differ most",
            lead="These pairs of similar rows have the least alike explanations.",
            table=pairs,
            caption=f"The {min(WORST_PAIRS, len(pairs))} worst of "
            f"{len(neighbours.edges) if neighbours else 0:,} pairs, and the column "
            "in which they differ most.",
        )


def trail_statements(trail: Trail | None) -> Iterator[Statement]:
    """What lies between solved weights, and how well that is known."""
    if trail is None:
        return
    front = trail.front
    if front is None:
        yield Statement(
            f"The slider steps through {len(trail.optima)} solved optima; nothing is "
            "drawn between them.",
            "checked",
        )
        return
    yield Statement(
        f"Between solved weights the front is drawn from {len(front.theta) + 1} "
        "numbers for each attribution.",
        "chosen",
    )
    yield Statement(
        f"At {front.n_proved} points between solved weights, drawn attributions err by "
        f"at most {front.error:.0e} of the largest.",
        "proved",
    )


def proof(best: Optimum) -> Iterator[Statement]:
    """What is proved of the optimum, and what is known of its target."""
    certificate = best.certificate
    if certificate is None:
        yield Statement("It was not optimized: nothing is proved of it.", "not said")
        return
    yield Statement(f"The bound on the objective is by {certificate.kind}.", "proved")
    kind: Any = "estimated" if is_sampled(best) else "checked"
    if best.target is None or np.isnan(best.target_error):
        kind = "not said"
    told = target_in_words(best).removeprefix("target ")
    yield Statement(f"The target that it follows: {told}.", kind)


def settings(best: Optimum) -> Iterator[Statement]:
    """How it was made."""
    for name, value in best.parameters.items():
        kind: Any = "checked" if name in ("stability", "own value") else "chosen"
        text = in_short(value)
        for part in text.split("; ") if name == "stability" else [text]:
            yield Statement(sentence(f"{name}: {part}"), kind)
    for name, weight in best.weights.items():
        yield Statement(f"The weight of {name} is {weight:.4g}.", "chosen")
    if best.solver is not None:
        yield Statement(f"Solver: {best.solver}.", "chosen")


def _headlines(best: Optimum, share: float, delta: float) -> Iterator[Headline]:
    names = largest_features(best)
    if names:
        yield Headline(
            "What matters most?",
            str(names[0]),
            f"Then {enumerated(names[1:], 'and')}." if names[1:] else "",
        )
    shares = best.loss_shares
    for share_kept in map(shares.get, _FAITHFUL):
        if share_kept is not None and np.isfinite(share_kept):
            yield faithful(share_kept)
    certificate = best.certificate
    if certificate is not None:
        yield best_possible(certificate.gap, certificate.holds(1e-5))
    words = clear_in_words(best, share, delta)
    number, rest = words.split(" survive ", 1)
    kind: Any = "estimated" if is_sampled(best) else "checked"
    yield Headline("Which signs are clear?", number, f"survive {rest}.", kind)
    missed = best.completeness_gap
    if missed is not None:
        most = float(np.abs(missed).max())
        yield Headline(
            "Do rows add up?",
            "yes" if most < 1e-6 * float(np.abs(best.attributions).max()) else "no",
            f"The largest miss is {most:.0e}.",
            "checked",
        )

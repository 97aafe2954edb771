"""Scores in words: what the largest say, and what a reader has to be careful with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from propopt._typing import Array, Values
from propopt.interactions.inference.moments import FEW_ROWS
from propopt.output.text import printable
from propopt.results.conclusions.words import plural


if TYPE_CHECKING:
    from propopt.interactions.result import InteractionScores


SET_NOUNS: Final = {1: "feature", 2: "pair", 3: "triple"}
WORDS_LEVEL: Final = 0.9
"""Of intervals in words, all together."""


def level_in_words(level: float) -> str:
    """In percent, with as many digits as it has.

    Examples
    --------
    >>> level_in_words(0.9), level_in_words(0.995)
    ('90 %', '99.5 %')
    """
    return f"{100.0 * level:.4g} %"


def scores_text(scores: InteractionScores) -> str:
    """One line about scores."""
    words = [
        counted_sets(scores, len(scores)),
        plural(len(scores.names), "feature"),
        plural(scores.n_rows, "row"),
        f"{scores.error} error",
        scores.method,
    ]
    if len(scores) > 0 and not np.isnan(scores.estimates).all():
        best = int(np.nanargmax(scores.estimates))
        words.append(f"largest {set_in_words(scores, best)} {_number(scores, best)}")
    return f"InteractionScores({printable('; '.join(words))})"


def set_in_words(scores: InteractionScores, q: int) -> str:
    """The names of one set, with a sign between them."""
    return " × ".join(str(scores.names[place]) for place in scores.sets[q])


def largest_in_words(scores: InteractionScores, k: int) -> tuple[str, ...]:
    """A sentence for each of the k scores that are largest in size, largest first."""
    order = np.argsort(-np.abs(scores.estimates), kind="stable")[:k]  # NaN last
    ends = scores.intervals(level=WORDS_LEVEL)
    return tuple(_sentence(scores, int(q), ends[q]) for q in order)


def _sentence(scores: InteractionScores, q: int, ends: Array) -> str:
    low, high = ends
    name, score = set_in_words(scores, q), scores.estimates[q]
    level = level_in_words(WORDS_LEVEL)
    numbers = f"{score:.4g}, {level} interval from {low:.4g} to {high:.4g}"
    return f"{printable(name)}: {numbers}: {_meaning(scores, q, low, high)}."


def _meaning(scores: InteractionScores, q: int, low: float, high: float) -> str:
    """The sign as the paper reads it."""
    if np.isnan(low):
        return "its error is not known"
    if low <= 0.0 <= high:
        return "zero is not excluded"
    if np.isnan(scores.leak[q]):
        return "zero is excluded, and what main effects leak into it is not known"
    if not _beyond(low, high, scores.leak[q]):
        return "no more than what main effects leak into it"
    if scores.order == 1:
        return "the learner is worse without it" if low > 0 else "no worse without it"
    if low > 0.0:
        return "they matter jointly, beyond what each does alone"
    if scores.order == 2:
        return "each stands in for the other, as correlated features do"
    return "what they do jointly is had from fewer of them"


def _beyond(low: Values | float, high: Values | float, leak: Values | float) -> Any:
    """Whether intervals are on one side of zero, and of the leak on the same."""
    return (low > np.maximum(leak, 0.0)) | (high < np.minimum(leak, 0.0))


def cautions(scores: InteractionScores) -> Iterator[str]:
    """What the numbers do not say, a sentence each."""
    yield from _leak(scores)
    yield from _equal_rows(scores)
    yield from _few_rows(scores)
    yield from _unknown(scores)


def _leak(scores: InteractionScores) -> Iterator[str]:
    """Fixed numbers of columns: a score of zero is not what no interaction gives."""
    if not scores.leak.any():
        return
    yield (
        "all patches have one number of features, so that each feature is in more of "
        "them once another is left out, and a set without interaction does not score "
        f"zero: {_leak_in_numbers(scores)}; compare ranks, or draw "
        "columns='bernoulli', by which pairs of independent features without "
        "interaction have a target of zero"
    )


def _leak_in_numbers(scores: InteractionScores) -> str:
    if np.isnan(scores.leak).all():
        return f"how far from zero is not known of {scores.error} errors"
    low, high = scores.intervals(level=WORDS_LEVEL).T
    found, beyond = _beyond(low, high, 0.0), _beyond(low, high, scores.leak)
    what = "a feature without effect" if scores.order == 1 else "no interaction"
    return (
        f"with these main effects {what} would give scores "
        f"from {np.nanmin(scores.leak):.3g} to {np.nanmax(scores.leak):.3g}, and of "
        f"{plural(int(found.sum()), 'interval')} that exclude zero "
        f"{int(beyond.sum())} are beyond that leak too"
    )


def _equal_rows(scores: InteractionScores) -> Iterator[str]:
    count = int(scores.degenerate.sum())
    if count == 0:
        return
    bound = scores.error_range
    limits = (
        f"no error is outside {bound.low:.4g} to {bound.high:.4g}"
        if bound.proved
        else f"errors have no bound, and none is taken to be outside {bound.low:.4g} "
        f"to {bound.high:.4g}, those that were seen"
    )
    yield (
        f"of {counted_sets(scores, count)} all rows have one score: "
        "without a spread their intervals are what "
        f"{plural(scores.n_rows, 'equal row')} allow, where {limits}"
    )


def _few_rows(scores: InteractionScores) -> Iterator[str]:
    count = int((scores.effective_rows < FEW_ROWS).sum())
    if count > 0:
        yield (
            f"of {counted_sets(scores, count)} fewer than {FEW_ROWS} "
            f"rows carry the standard error (at least "
            f"{np.nanmin(scores.effective_rows):.1f}): a normal law is doubtful there"
        )


def _unknown(scores: InteractionScores) -> Iterator[str]:
    count = int(np.isnan(scores.monte_carlo).sum())
    if count > 0:
        yield (
            f"of {counted_sets(scores, count)} the error of finitely "
            "many patches is not known, as a row has all its patches in one group; "
            "draw more patches"
        )


def counted_sets(scores: InteractionScores, count: int) -> str:
    """So many of the sets that are scored."""
    noun = SET_NOUNS.get(scores.order)
    if noun is None:
        return f"{plural(count, 'set')} of {scores.order} features"
    return plural(count, noun)


def units_of_scores(scores: InteractionScores) -> str:
    """What a score is measured in."""
    return (
        f"scores are in {scores.units}; they are compared within one learner, not with "
        "those of another"
    )


def aim_of_intervals(scores: InteractionScores) -> str:
    """What the intervals are intervals of."""
    if scores.n_groups:
        return "intervals are for new rows and any number of patches of this table"
    return "intervals are for new rows and the predictors as they are fitted here"


def _number(scores: InteractionScores, q: int) -> str:
    return f"{scores.estimates[q]:.4g} ± {scores.total_errors[q]:.2g}"

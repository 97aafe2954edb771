"""Scores in words: what the largest say, and what a reader has to be careful with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from propopt._typing import Array, Values
from propopt.interactions.inference.moments import FEW_ROWS
from propopt.output.text import printable
from propopt.results.conclusions.words import plural
from propopt.tables.names import listed


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
    own = set(scores.sets[q].tolist()) & set(scores.not_used)
    if own:
        names = listed([scores.names[place] for place in sorted(own)])
        return f"not used: no fit changes a prediction by {names}"
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
    """What the numbers do not say: each a verdict, a number, and what to do."""
    yield from _leak(scores)
    yield from _few_patches(scores)
    yield from _not_used(scores)
    yield from _equal_rows(scores)
    yield from _few_rows(scores)
    yield from _unknown(scores)


def _leak(scores: InteractionScores) -> Iterator[str]:
    """Fixed numbers of columns: a score of zero is not what no interaction gives."""
    if not scores.leak.any():
        return
    verdict = "Excluding zero is no finding: patches of one size leak"
    cure = "Draw columns='bernoulli'."
    if np.isnan(scores.leak).all():
        unknown = f"into scores, how much is unknown for {scores.error} errors"
        yield f"{verdict} {unknown}. {cure}"
        return
    low, high = scores.intervals(level=WORDS_LEVEL).T
    beyond = int(_beyond(low, high, scores.leak).sum())
    leak = f"{np.nanmin(scores.leak):.3g} to {np.nanmax(scores.leak):.3g}"
    verb = "goes" if beyond == 1 else "go"
    yield (
        f"{verdict} {leak} into scores. {plural(beyond, 'interval')} {verb} beyond. "
        f"{cure}"
    )


def _few_patches(scores: InteractionScores) -> Iterator[str]:
    """se_mc² falls as 1/B: with B (se_mc/se)² patches it is what se is now.

    Where a score is near zero in all rows, se is itself of patches and falls with them,
    so that the ratio may stay; the total error falls all the same.
    """
    known = (scores.standard_errors > 0.0) & (scores.monte_carlo > 0.0)
    ratios = scores.monte_carlo[known] / scores.standard_errors[known]
    worst = float(ratios.max(initial=0.0))
    if worst <= 1.0:
        return
    count = int((ratios > 1.0).sum())
    more = two_digits_up(max(scores.n_patches, 1) * worst**2)
    cure = (
        f"Take n_patches={more}" if scores.n_patches else f"Take {more} times as many"
    )
    yield (
        f"Few patches limit {count} of {counted_sets(scores, len(scores))}: their "
        f"error is up to {worst:.2g} times that of rows. {cure} or more."
    )


def two_digits_up(number: float) -> int:
    """The next whole number of two digits and zeros.

    Examples
    --------
    >>> two_digits_up(7.2), two_digits_up(12_340.0), two_digits_up(99_001.0)
    (8, 13000, 100000)
    """
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit


def _not_used(scores: InteractionScores) -> Iterator[str]:
    count = len(scores.not_used)
    if count > 0:
        verb = "is" if count == 1 else "are"
        yield (
            f"{plural(count, 'feature')} {verb} not used by any fit: scores of sets "
            "with such a feature are 0. Leave it out to save time."
        )


def _equal_rows(scores: InteractionScores) -> Iterator[str]:
    count = int(scores.degenerate.sum())
    if count > 0:
        bound = scores.error_range
        limits = f"{bound.low:.4g} to {bound.high:.4g}"
        seen = "" if bound.proved else " (as seen)"
        yield (
            f"All rows score alike in {counted_sets(scores, count)}: intervals assume "
            f"errors stay within {limits}{seen}. Judge over {_independent(scores)}."
        )


def _few_rows(scores: InteractionScores) -> Iterator[str]:
    count = int((scores.effective_rows < FEW_ROWS).sum())
    if count > 0:
        what = "groups" if scores.n_row_groups else "rows"
        yield (
            f"Fewer than {FEW_ROWS} {what} carry the error of "
            f"{counted_sets(scores, count)} (at least "
            f"{np.nanmin(scores.effective_rows):.1f}). A normal law is doubtful there: "
            f"judge more {what}."
        )


def _unknown(scores: InteractionScores) -> Iterator[str]:
    count = int(np.isnan(scores.monte_carlo).sum())
    if count > 0:
        yield (
            f"The error of few patches is unknown for {counted_sets(scores, count)}: a "
            "row has all its patches in one group. Draw more patches."
        )


def _independent(scores: InteractionScores) -> str:
    """Of how many rows, or groups of rows, errors are made."""
    what = "group" if scores.n_row_groups else "row"
    return plural(scores.n_independent, what)


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
    if scores.n_row_groups:
        return (
            f"intervals are for rows of new groups ({scores.n_row_groups} were judged) "
            "and the predictors as they are fitted here"
        )
    return "intervals are for new rows and the predictors as they are fitted here"


def _number(scores: InteractionScores, q: int) -> str:
    return f"{scores.estimates[q]:.4g} ± {scores.total_errors[q]:.2g}"

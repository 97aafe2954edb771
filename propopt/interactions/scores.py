"""Scores of interactions as tables, words, cards and files."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array, Positions, Truths, Values
from propopt.base.checks import known_word, read_count, sealed
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, write_csv
from propopt.base.html import html_card, html_table
from propopt.base.text import Quantity, in_html, plain_name, printable
from propopt.interactions.features import Places, pairs_matrix
from propopt.interactions.inference import (
    ALTERNATIVES,
    FEW_ROWS,
    Adjustment,
    Alternative,
    EqualRows,
    ErrorKind,
    ErrorRange,
    Null,
    ScoreLaw,
    Side,
    adjusted_p_values,
    are_equal,
    interval_alpha,
    read_alpha,
)
from propopt.results.archive import (
    Arrays,
    CheckedFile,
    Header,
    Kinds,
    are_texts,
    check_header,
    is_count,
    is_number,
    is_positive,
    is_quantity,
    is_text,
)
from propopt.results.certain import plural
from propopt.tables.frames import listed, order_of


# ---- iLOCO of sets of features, with what is known of its error


def scores_frame(
    scores: InteractionScores,
    law: ScoreLaw,
    ends: Array,
    adjusted: Values,
    alpha: float,
) -> pd.DataFrame:
    """One row for each set: its features, score, errors, interval and test."""
    features = {
        f"feature_{k + 1}": [scores.names[place] for place in scores.sets[:, k]]
        for k in range(scores.order)
    }
    return pd.DataFrame(
        {
            **features,
            "estimate": scores.estimates,
            "se": scores.standard_errors,
            "se_mc": scores.monte_carlo,
            "se_total": scores.total_errors,
            "ci_low": ends[:, 0],
            "ci_high": ends[:, 1],
            "stat": law.statistics,
            "p_one": law.p_values("greater"),
            "p_two": law.p_values("two-sided"),
            "p_adj": adjusted,
            "reject": adjusted <= alpha,
            "leak": scores.leak,
            "n_patches_min": scores.counts,
            "degenerate": scores.degenerate,
            "effective_rows": scores.effective_rows,
            "used": ~scores.are_not_used,
        }
    )


# ---- Scores as a file, and back: one header and arrays, checked alike on both ways


_OF_MAIN = "main_"
"""Before the names of arrays of the main effects."""


def write_scores(path: str | Path, scores: InteractionScores) -> None:
    """Write to an ``.npz`` file."""
    header, arrays, main = _header(scores), _arrays(scores), scores.main
    if main is not None:
        header["main"] = _header(main)
        arrays |= {_OF_MAIN + name: array for name, array in _arrays(main).items()}
    _FILE.write(path, header, arrays)


def _header(scores: InteractionScores) -> dict[str, Any]:
    bound = scores.error_range
    return {
        "names": [plain_name(name) for name in scores.names],
        "columns": [[plain_name(name) for name in own] for own in scores.columns],
        **{name: getattr(scores, name) for name in (*_TEXTS, *_COUNTS)},
        "notes": list(scores.notes),
        "not_used": list(scores.not_used),
        "quantity": None if (own := scores.quantity) is None else own.as_fields(),
        "error_range": [bound.low, bound.high, bound.proved],
        "main": None,
    }


def _arrays(scores: InteractionScores) -> dict[str, Array]:
    return {name: getattr(scores, name) for name in ("sets", *_NUMBERS)}


def _fields(header: Header, arrays: Arrays) -> dict[str, Any]:
    own = {k: a for k, a in arrays.items() if not k.startswith(_OF_MAIN)}
    rest = {k[len(_OF_MAIN) :]: a for k, a in arrays.items() if k not in own}
    fields = _checked(header, own)
    if header["main"] is None:
        for name in rest:
            raise InvalidInput(f"it also has the array {_OF_MAIN + name!r}")
        return fields
    check_header(header["main"], {**_KINDS, "main": (_is_none, "null")})
    return {**fields, "main": _checked(header["main"], rest)}


def _checked(header: Header, arrays: Arrays) -> dict[str, Any]:
    _refuse_odd_arrays(arrays, len(header["names"]))
    if header["n_candidates"] < len(arrays["sets"]):
        raise InvalidInput("n_candidates: expected at least the number of sets")
    if len(header["columns"]) != len(header["names"]):
        raise InvalidInput("columns: expected those of each feature")
    if any(place >= len(header["names"]) for place in header["not_used"]):
        raise InvalidInput("not_used: expected places of features")
    low, high, proved = header["error_range"]
    return {
        **header,
        **arrays,
        "names": tuple(header["names"]),
        "columns": tuple(map(tuple, header["columns"])),
        "notes": tuple(header["notes"]),
        "not_used": tuple(header["not_used"]),
        "quantity": None if (own := header["quantity"]) is None else Quantity(**own),
        "error_range": ErrorRange(float(low), float(high), proved),
    }


def _refuse_odd_arrays(arrays: Mapping[str, Array], n_features: int) -> None:
    for name in sorted(arrays.keys() ^ {"sets", *_NUMBERS}):
        has = "also" if name in arrays else "no"
        raise InvalidInput(f"it has {has} {name}")
    sets = arrays["sets"]
    if sets.ndim != 2 or sets.dtype.kind != "i" or sets.shape[1] == 0:
        raise InvalidInput("sets: expected integers of shape (Q, r)")
    if ((sets < 0) | (sets >= n_features)).any() or (np.diff(sets, axis=1) <= 0).any():
        raise InvalidInput(
            f"sets: expected ascending places from 0 to {n_features - 1}"
        )
    for name in _NUMBERS:
        if arrays[name].shape != (len(sets),) or arrays[name].dtype.kind != "f":
            raise InvalidInput(f"{name}: expected {len(sets)} numbers")
        if name in _SIZES and (arrays[name] < 0.0).any():
            raise InvalidInput(f"{name}: expected numbers >= 0")


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(is_text(x) or is_number(x) for x in value)


def _are_indices(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(map(is_count, value))
        and len(set(value)) == len(value)
    )


def _are_groups(value: object) -> bool:
    return isinstance(value, list) and all(_are_names(own) and own for own in value)


def _is_range(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and is_number(value[0])
        and is_number(value[1])
        and bool(value[0] <= value[1])
        and isinstance(value[2], bool)
    )


def _is_none(value: object) -> bool:
    return value is None


def _is_main(value: object) -> bool:
    return value is None or isinstance(value, dict)


_TEXTS: Final = ("method", "error", "units")
_COUNTS: Final = (
    "n_rows",
    "n_candidates",
    "n_groups",
    "n_patches",
    "n_row_groups",
)
_SIZES: Final = ("standard_errors", "monte_carlo", "counts", "effective_rows")
_NUMBERS: Final = (*_SIZES, "estimates", "leak")
_KINDS: Final[Kinds] = {
    "names": (_are_names, "a list of text and numbers"),
    "columns": (_are_groups, "a list of lists of text and numbers"),
    **dict.fromkeys(_TEXTS, (is_text, "text")),
    **dict.fromkeys(_COUNTS, (is_count, "an integer >= 0")),
    "n_rows": (is_positive, "an integer >= 1"),
    "quantity": (is_quantity, "what is predicted, or null"),
    "not_used": (_are_indices, "a list of integers >= 0, each once"),
    "notes": (are_texts, "a list of text"),
    "error_range": (_is_range, "two numbers, in order, and whether they are proved"),
    "main": (_is_main, "the header of main effects, or null"),
}
_FILE: Final = CheckedFile(
    form=Format("propopt interactions", "saved interactions", version=1),
    kinds=_KINDS,
    fields=_fields,
)


# ---- Scores in words: what the largest say, and what a reader has to be careful with


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
        value, error = scores.estimates[best], scores.total_errors[best]
        words.append(f"largest {set_in_words(scores, best)} {value:.4g} ± {error:.2g}")
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
        label = "groups" if scores.n_row_groups else "rows"
        yield (
            f"Fewer than {FEW_ROWS} {label} carry the error of "
            f"{counted_sets(scores, count)} (at least "
            f"{np.nanmin(scores.effective_rows):.1f}). A normal law is doubtful there: "
            f"judge more {label}."
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
    label = "group" if scores.n_row_groups else "row"
    return plural(scores.n_independent, label)


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


# ---- A card of scores for notebooks: escaped, and without scripts


CARD_ROWS: Final = 5
"""Of each table on a card."""


def scores_html(scores: InteractionScores) -> str:
    """A title, what was done, the largest and the most negative, and cautions."""
    title = (
        f"iLOCO of {counted_sets(scores, len(scores))}, {plural(scores.n_rows, 'row')}"
    )
    facts = (
        f"{scores.method}; {scores.error} error",
        units_of_scores(scores),
        aim_of_intervals(scores),
    )
    order = np.argsort(-scores.estimates, kind="stable")
    order = order[~np.isnan(scores.estimates[order])]
    below = order[::-1][:CARD_ROWS]
    tables = (
        _table(scores, "largest", order[:CARD_ROWS]),
        _table(scores, "most negative", below[scores.estimates[below] < 0.0]),
    )
    warned = (*scores.notes, *cautions(scores))
    return html_card(
        (
            f"<b>{in_html(title)}</b>",
            "<br>".join(map(in_html, facts)),
            *tables,
            "<br>".join(map(in_html, warned)),
        )
    )


def _table(scores: InteractionScores, title: str, indices: Positions) -> str:
    if len(indices) == 0:
        return ""
    level = level_in_words(WORDS_LEVEL)
    head = (title, "score", f"{level} interval, all together", "error")
    return html_table(head, _rows(scores, indices))


def _rows(scores: InteractionScores, indices: Positions) -> Iterable[list[str]]:
    ends, not_used = scores.intervals(level=WORDS_LEVEL), scores.are_not_used
    for q in map(int, indices):
        low, high = ends[q]
        interval = "not used" if not_used[q] else f"{low:.4g} to {high:.4g}"
        yield [
            in_html(set_in_words(scores, q)),
            f"{scores.estimates[q]:.4g}",
            interval,
            f"{scores.total_errors[q]:.2g}",
        ]


def _number(value: float) -> Values:
    return np.array(value)


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class InteractionScores:
    """Scores of Q sets of r features: how much the features matter jointly.

    Of pairs a large score is a contribution beyond those of the two, and a very
    negative one that each stands in for the other. Scores are in units of the error of
    one learner: those of another learner are not compared with them.

    Parameters
    ----------
    sets : array of int (Q, r)
        Places of the features of each set, ascending.
    names : tuple (M,)
        Of the features.
    estimates : array (Q,)
        iLOCO_S, in ``units``.
    standard_errors : array (Q,)
        Of other rows.
    monte_carlo : array (Q,)
        Of other patches; zero where there are none.
    counts : array (Q,)
        Predictions that are averaged, where they are fewest.
    n_rows : int
        N, rows that were judged.
    n_candidates : int
        Sets among which these were chosen: corrections count all of them.
    method : str
        How predictors without features were had, in words.
    error : str
        Err, by its name.
    units : str
        Of the scores.
    notes : tuple of str
        What a reader has to know, a sentence each.
    leak : array (Q,)
        What a model without any interaction would show, by patches that all have one
        number of features; zero otherwise.
    effective_rows : array (Q,)
        How many rows carry the standard error; NaN where it is not known.
    n_groups : int
        Of patches, from which ``monte_carlo`` is estimated; 0 where it is exact.
    error_range : ErrorRange
        Between what the error of a row lies.
    main : InteractionScores or None
        LOCO of each feature.
    columns : tuple of tuple (M,)
        Names of the columns of each feature; by default one, called as the feature.
    n_patches : int
        B; 0 where predictors are no means of patches.
    n_row_groups : int
        C, of rows that are judged and belong together; 0 where each row is its own.
    not_used : tuple of int
        Places of features that no fitted learner uses: scores of sets with them are 0,
        without error.
    quantity : Quantity or None
        What the learner predicts, whose error is measured.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.interactions import InteractionScores
    >>> scores = InteractionScores(
    ...     sets=np.array([[0, 1], [0, 2], [1, 2]]),
    ...     names=("a", "b", "c"),
    ...     estimates=np.array([0.5, -0.1, 0.02]),
    ...     counts=np.ones(3),
    ...     standard_errors=np.array([0.1, 0.08, 0.03]),
    ...     monte_carlo=np.zeros(3),
    ...     n_rows=100,
    ...     n_candidates=3,
    ...     method="split",
    ...     error="squared",
    ...     units="u²",
    ... )
    >>> scores.intervals(level=0.9, adjust="bonferroni").round(3)
    array([[ 0.287,  0.713],
           [-0.27 ,  0.07 ],
           [-0.044,  0.084]])
    >>> scores.p_values("greater").round(3)
    array([0.   , 0.894, 0.252])
    """

    sets: Places
    names: tuple[Hashable, ...]
    estimates: Values
    standard_errors: Values
    monte_carlo: Values
    counts: Values
    n_rows: int
    n_candidates: int
    method: str
    error: str
    units: str
    notes: tuple[str, ...] = ()
    leak: Values = field(default_factory=lambda: _number(0.0))
    effective_rows: Values = field(default_factory=lambda: _number(np.nan))
    n_groups: int = 0
    error_range: ErrorRange = ErrorRange(0.0, 1.0, proved=False)
    main: InteractionScores | None = None
    columns: tuple[tuple[Hashable, ...], ...] = ()
    n_patches: int = 0
    n_row_groups: int = 0
    not_used: tuple[int, ...] = ()
    quantity: Quantity | None = None

    def __post_init__(self) -> None:
        own = vars(self)
        own["columns"] = self.columns or tuple((name,) for name in self.names)
        for name in ("leak", "effective_rows"):
            own[name] = np.array(np.broadcast_to(own[name], len(self.sets)))
        for name, value in own.items():
            if isinstance(value, np.ndarray):
                own[name] = sealed(value)

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def order(self) -> int:
        """How many features a set has: of LOCO 1, of pairs 2."""
        return int(self.sets.shape[1])

    @property
    def total_errors(self) -> Values:
        """√(se² + se_mc²): of other rows and of other patches, shape (Q,)."""
        return np.hypot(self.standard_errors, self.monte_carlo)

    @property
    def explained(self) -> str:
        """What scores are made of, such as "squared error of predicted price"."""
        label = self.quantity
        if label is None:
            return f"{self.error} error"
        if label.kind == "value":
            return f"{self.error} error of {label.in_words()}"
        error = "" if self.error == "probability" else f"{self.error} error of the "
        whose = "" if label.outcome is None else f" of {label.outcome}"
        own = f"1 − probability of the true class{whose}, by {label.model}"
        return f"{error}probabilities of {label.model}" if error else own

    @property
    def n_independent(self) -> int:
        """Rows, or groups of rows, of which errors are made."""
        return self.n_row_groups or self.n_rows

    @property
    def are_not_used(self) -> Truths:
        """Where a set has a feature that no fitted learner uses, (Q,).

        At no row of the table does a prediction change when the values of such a
        feature are exchanged between the rows. What leaving it out changes all the same
        is chance (ties, seeds) or the number of columns; it is not counted.
        """
        own = np.isin(self.sets, np.array(self.not_used, np.intp))
        return np.asarray(own.any(axis=1))

    @property
    def degenerate(self) -> Truths:
        """Where all rows have one score, so that no spread can be estimated, (Q,).

        Not of features that are not used: their score is known.
        """
        rounding = self.error_range.rounding(self.order)
        equal = are_equal(self.standard_errors, self.n_rows, rounding)
        return equal & ~self.are_not_used

    def intervals(
        self,
        *,
        level: float = 0.9,
        adjust: Adjustment = "bonferroni",
        side: Side = "both",
        errors: ErrorKind = "total",
        against: Null = "zero",
    ) -> Array:
        """Confidence intervals (Q, 2) of what scores estimate.

        Parameters
        ----------
        level : float
            1 − α, of all intervals together as ``adjust`` has it.
        adjust : Adjustment
            "none", "bonferroni", "holm" (whose intervals are those of Bonferroni),
            "benjamini-hochberg" or "benjamini-yekutieli" (intervals of the R sets that
            are found have 1 − R α/m).
        side : {"both", "lower", "upper"}
            Which ends are finite.
        errors : {"total", "rows"}
            With the error of finitely many patches, or without, as in the paper. The
            former is known from groups of patches, with as many degrees of freedom less
            one, and the law is Student's.
        against : {"zero", "leak"}
            The null by which sets are found: only the last two adjustments read it.

        Raises
        ------
        InvalidInput
            If the level is not between 0 and 1, or a name is none of these.
        """
        alpha, law = read_alpha(level), self._law(errors, against)
        side = known_word(side, Side, "side")
        p = law.p_values(ALTERNATIVES[side])
        return law.intervals(interval_alpha(p, adjust, self.n_candidates, alpha), side)

    def p_values(
        self,
        alternative: Alternative = "two-sided",
        *,
        adjust: Adjustment = "none",
        errors: ErrorKind = "total",
        against: Null = "zero",
    ) -> Values:
        """p-values (Q,) of "the score is zero".

        Parameters
        ----------
        alternative : {"two-sided", "greater", "less"}
            Greater than zero is 1 − Φ(T), of "it is at most zero".
        adjust : Adjustment
            Across all ``n_candidates``.
        errors : {"total", "rows"}
            As :meth:`intervals` has it.
        against : {"zero", "leak"}
            What stands for zero; the leak counts as known.

        Raises
        ------
        InvalidInput
            If a name is none of these.
        """
        law = self._law(errors, against)
        p = law.p_values(known_word(alternative, Alternative, "alternative"))
        return adjusted_p_values(p, adjust, self.n_candidates)

    def matrix(self) -> Array:
        """Scores of pairs as a symmetric matrix (M, M); NaN where there is none.

        Raises
        ------
        InvalidInput
            If the sets are no pairs.
        """
        if self.order != 2:
            raise InvalidInput(f"matrix: expected pairs, got sets of {self.order}")
        return pairs_matrix(self.estimates, self.sets, len(self.names))

    def to_frame(
        self,
        *,
        level: float = 0.9,
        adjust: Adjustment = "bonferroni",
        side: Side = "both",
        errors: ErrorKind = "total",
        against: Null = "zero",
    ) -> pd.DataFrame:
        """One row for each set, in the order of the sets.

        ``feature_1`` to ``feature_r``; ``estimate``; ``se`` of other rows, ``se_mc`` of
        other patches and ``se_total``; ``ci_low`` and ``ci_high``; ``stat``, T =
        (estimate − null)/error; ``p_one`` of "at most the null" and ``p_two``, each by
        itself; ``p_adj``, that of the side, adjusted; ``reject`` where it is at most
        1 − level; ``leak``; ``n_patches_min``; ``degenerate``; ``effective_rows``;
        ``used``, False of sets with a feature that no learner uses.
        Parameters are those of :meth:`intervals`.
        """
        alpha, law = read_alpha(level), self._law(errors, against)
        p = law.p_values(ALTERNATIVES[known_word(side, Side, "side")])
        adjusted = adjusted_p_values(p, adjust, self.n_candidates)
        ends = law.intervals(interval_alpha(p, adjust, self.n_candidates, alpha), side)
        return scores_frame(self, law, ends, adjusted, alpha)

    def top(
        self, k: int = 10, *, level: float = 0.9, adjust: Adjustment = "bonferroni"
    ) -> pd.DataFrame:
        """The k largest scores, rows of :meth:`to_frame`: what matters jointly."""
        frame = self.to_frame(level=level, adjust=adjust)
        return frame.nlargest(read_count(k, "k"), "estimate")

    def most_negative(
        self, k: int = 10, *, level: float = 0.9, adjust: Adjustment = "bonferroni"
    ) -> pd.DataFrame:
        """The k smallest scores: features that stand in for each other."""
        frame = self.to_frame(level=level, adjust=adjust)
        return frame.nsmallest(read_count(k, "k"), "estimate")

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; numbers read back to the same value."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write all of it to an ``.npz`` file without pickles, for :meth:`load`.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.
        """
        write_scores(path, self)

    @classmethod
    def load(cls, path: str | Path) -> InteractionScores:
        """What :meth:`save` wrote; names that are no numbers are text.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no scores have.
        FileNotFoundError
            If there is none.
        """
        fields = _FILE.read(path)
        main = fields.pop("main")
        return cls(**fields, main=None if main is None else cls(**main))

    def sentences(self, k: int = 5) -> tuple[str, ...]:
        """The k scores of largest size in words, each with a 90 % interval.

        All intervals hold together at that level, by Bonferroni's correction.
        """
        return largest_in_words(self, read_count(k, "k"))

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the numbers do not say, a sentence each.

        What main effects leak into scores where all patches have one number of
        features; rows that are all equal, or so few that no normal law holds; errors of
        patches that are not known.
        """
        return tuple(cautions(self))

    def __repr__(self) -> str:
        return scores_text(self)

    def _repr_html_(self) -> str:
        return scores_html(self)

    def _law(self, errors: ErrorKind, against: Null) -> ScoreLaw:
        total = known_word(errors, ErrorKind, "errors") == "total"
        leak = known_word(against, Null, "against") == "leak"
        spread = self.total_errors if total else self.standard_errors
        return ScoreLaw(
            estimates=self.estimates,
            errors=spread,
            degrees=self._degrees(spread) if total else self._degrees_of_rows,
            null=self.leak if leak else np.zeros(len(self)),
            equal=self.degenerate,
            equal_rows=EqualRows(
                self.estimates,
                self.error_range.of_score(self.order),
                self.n_independent,
            ),
        )

    def _degrees(self, total: Values) -> Values:
        """(G − 1) (se_total/se_mc)⁴, by Satterthwaite: only se_mc is known from few."""
        if self.n_groups < 2:
            return self._degrees_of_rows
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.monte_carlo == 0.0, np.inf, total / self.monte_carlo)
        return np.asarray((self.n_groups - 1) * ratio**4)

    @property
    def _degrees_of_rows(self) -> Values:
        """C − 1 of groups of rows; of so many rows the law is taken as normal."""
        degrees = self.n_row_groups - 1 if self.n_row_groups else np.inf
        return np.full(len(self), float(degrees))


# ---- Features of a result among columns of a table: by name, or by position of arrays


def indices_of_columns(
    result: InteractionScores,
    names: Sequence[Hashable] | None,  # shape (D,)
    n_columns: int,
    whose: str,
) -> list[Positions]:
    """Where the columns of each of the M features of a result stand among others.

    Names decide where both sides have them; a feature of many columns may be one among
    the others, as of a schema. The columns of an array are counted: then position
    decides.
    """
    members = _members(result, names)
    own = list(chain.from_iterable(members))
    if names is None or (are_counted(own) and not are_counted(names)):
        indices = _by_position(own, n_columns, whose, grouped=len(own) > len(members))
    else:
        order = order_of(own, names, "interactions: their columns", whose, counted=True)
        indices = np.arange(n_columns) if order is None else np.argsort(order)
    return np.split(indices, np.cumsum([len(columns) for columns in members])[:-1])


def are_counted(names: Sequence[Hashable]) -> bool:
    """Whether names only count from zero, in any order: those of the columns of arrays.

    Examples
    --------
    >>> are_counted([0, 2, 1]), are_counted([0, 2]), are_counted(["0"])
    (True, False, False)
    """
    numbers = {name for name in names if isinstance(name, int | np.integer)}
    return numbers == set(range(len(names)))


def _members(
    result: InteractionScores, names: Sequence[Hashable] | None
) -> tuple[tuple[Hashable, ...], ...]:
    """The columns of each feature; the feature itself where the others have it."""
    if names is not None and set(map(plain_name, names)) == set(
        map(plain_name, result.names)
    ):
        return tuple((name,) for name in result.names)
    return result.columns


def _by_position(
    own: Sequence[Hashable], n_columns: int, whose: str, *, grouped: bool
) -> Positions:
    if len(own) != n_columns:
        raise InvalidInput(
            f"interactions: expected scores of the {n_columns} columns of {whose}, got "
            f"those of {len(own)}: {listed(own, 4)}"
        )
    if are_counted(own):
        return np.array(own, dtype=np.intp)
    if grouped:
        raise InvalidInput(
            f"interactions: which of the columns of {whose} are one feature is known "
            "by their names, and they have none; give a DataFrame"
        )
    return np.arange(n_columns)


# ---- Which scores are clear: their intervals exclude what no interaction would show


_ADJUSTED: Final = {
    "bonferroni": "Bonferroni",
    "holm": "Holm",
    "benjamini-hochberg": "Benjamini–Hochberg",
    "benjamini-yekutieli": "Benjamini–Yekutieli",
}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ClearScores:
    """Scores of Q sets, their intervals, and which of them are beyond zero and leak."""

    names: tuple[tuple[str, ...], ...]  # (Q,): of the features of each set
    # (Q,): scores and the ends of their intervals; NaN where an error is not known
    estimates: Values
    low: Values  # shape (Q,)
    high: Values  # shape (Q,)
    # (Q,): what a model without interactions would show; zero where that is not known
    leak: Values
    in_words: str  # what the intervals are
    # (Q,): false of sets with a feature that no learner uses; by default all are
    used: Truths = field(default_factory=lambda: np.array(True))

    def __post_init__(self) -> None:
        used = np.broadcast_to(self.used, len(self.estimates))
        object.__setattr__(self, "used", used)

    @property
    def above(self) -> NDArray[np.bool_]:
        """Joint contributions: the interval is above zero and above the leak, (Q,)."""
        return np.asarray(self.low > np.maximum(self.leak, 0.0))

    @property
    def below(self) -> NDArray[np.bool_]:
        """Features that stand in for each other: below zero and the leak, (Q,)."""
        return np.asarray(self.high < np.minimum(self.leak, 0.0))

    @property
    def beyond(self) -> Values:
        """How far joint contributions are above zero and the leak, ≥ 0, (Q,)."""
        return np.maximum(self.estimates - np.maximum(self.leak, 0.0), 0.0)


def clear_scores(
    result: InteractionScores,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
) -> ClearScores:
    """The scores of a result with intervals that hold for all its candidates at once.

    With a fixed number of columns in each minipatch, scores without interaction are not
    zero. Where the result knows that leak, a score is clear only if it is beyond it.
    """
    if not isinstance(result, InteractionScores):
        raise InvalidInput(
            "result: expected InteractionScores, such as ILOCO(...).fit(X, y).result_, "
            f"got {type(result).__name__}"
        )
    low, high = result.intervals(level=level, adjust=adjust).T
    names = [str(name) for name in result.names]
    return ClearScores(
        names=tuple(tuple(names[k] for k in own) for own in result.sets.tolist()),
        estimates=result.estimates,
        low=low,
        high=high,
        leak=np.nan_to_num(result.leak, nan=0.0),
        in_words=_in_words(result, level, adjust),
        used=~result.are_not_used,
    )


def require_pairs(result: InteractionScores, label: str) -> None:
    """Refuse scores of sets of other sizes, and of none."""
    if result.order != 2:
        raise InvalidInput(
            f"{label}: expected scores of pairs, got sets of {result.order}: "
            "interactions(order=2) of a fitted ILOCO gives pairs, and "
            "interaction_intervals draws sets of any size"
        )
    if not len(result.sets):
        raise InvalidInput(f"{label}: there are no pairs")


def _in_words(result: InteractionScores, level: float, adjust: str) -> str:
    name = _ADJUSTED.get(adjust)
    of = "each alone" if name is None else f"{name} of {result.n_candidates:,}"
    return f"{level_in_words(level)} intervals, {of}"

"""What a rule of diagnosis is given, of rows or of a document, and what it finds."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.declared import field
from propopt.base.errors import Refused
from propopt.base.resources import BATCH_BUDGET, DrawPlan
from propopt.base.text import Reason
from propopt.lime.exact_limits import Limits, with_bins
from propopt.lime.fidelity import additive_variance
from propopt.lime.finite_samples import (
    FiniteFit,
    RunScatter,
    SingleRun,
    expected,
    expected_run,
    single_text_run,
    used_words,
)
from propopt.lime.laws.binned_columns import binned_columns
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import LimeLaw, draws_at
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.paths import SignsAround, signs_around, signs_of_words
from propopt.lime.records import LimeRecord
from propopt.lime.sampled_limits import (
    CommonDraws,
    LimeSubject,
    announced_cost,
    evaluated,
)
from propopt.lime.text.sampled_words import SampledWords, WordMeans, limits_of
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.tfidf.vectorisers import Vectoriser, document_features
from propopt.tables.documents import TextDocument


# ---- What rules look at: an explanation, and what is computed beside it


_IN_CELL: Final = 512
"""Draws in the cell of each row."""

_QUICK: Final = 1000
"""Draws for each place beside a row."""

ESTIMATED: Final = Reason("coefficients are estimated")

_DEVIATIONS: Final = (
    "{ratio:.2g} standard deviations of a run of {n:,} samples (sd {sd:.2g})"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(ABC):
    """Rows of a table or one document under diagnosis, and runs of n samples."""

    noun: ClassVar[str]  # what has coefficients
    wider: ClassVar[str]  # what would do where few samples count
    noisy: ClassVar[str]  # how many deviations of a run a coefficient is, and of what
    gap_unit: ClassVar[str]  # of gaps between f and the surrogate
    least_ratio: ClassVar[float] = 0.0  # of contrast and noise
    n_samples: int  # of one run
    names: tuple[str, ...]  # of columns, or words, (D,)
    beta: Attributions  # coefficients (N, D)
    is_exact: bool  # whether these have no error but rounding
    # (N, D): whether β_j is not exactly zero for want of the column in f
    depends: Mask
    effective_share: Values  # (N,): (E π)² / E π²
    values: Values  # (N,): f
    at_row: Values  # (N,): the surrogate there
    width: float  # of the kernel, ν
    ridge: float  # of one run

    @property
    @abstractmethod
    def run(self) -> SingleRun:
        """One run: its mean and its covariance; refused where f is not known."""

    @property
    @abstractmethod
    def finite(self) -> FiniteFit:
        """The mean of runs."""

    @abstractmethod
    def signs(self) -> SignsAround | Reason:
        """Changes of sign around the width."""

    @property
    @abstractmethod
    def gap_size(self) -> Values:
        """What a gap is compared with, (N,)."""

    @property
    @abstractmethod
    def interactions(self) -> Values:
        """The share of Var f that no sum of single columns has, (N,); 1 if unknown."""

    @property
    def contrast(self) -> Array:
        """How far coefficients are from those of what does nothing, (N, D)."""
        return np.abs(self.beta)

    @cached_property
    def largest(self) -> Array:
        """The largest |β| of each row, (N, 1); 1 where all are rounding."""
        size = np.abs(self.beta).max(axis=1, keepdims=True)
        return np.where(size > _ROUNDING * np.abs(self.values[:, None]), size, 1.0)

    @property
    def words(self) -> Array:
        """Names as a table of text, (D,)."""
        return np.array(self.names, object)

    @cached_property
    def sizes(self) -> Array:
        """|β| over the largest of the row, (N, D)."""
        return np.asarray(np.abs(self.beta) / self.largest)


_ROUNDING: Final = 1e-12
"""Of f at the row: coefficients below it are zero."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RowsEvidence(Evidence):
    """Rows of a table under diagnosis."""

    noun: ClassVar[str] = "column"
    wider: ClassVar[str] = (
        "a wider kernel, or exact limits, or GLIME's samples of the neighbourhood"
    )
    noisy: ClassVar[str] = (
        f"the coefficient {{beta:.3g}} is {_DEVIATIONS}: its sign depends on the seed"
    )
    gap_unit: ClassVar[str] = "sd of f under the weighted law"

    subject: LimeSubject  # the model and the law of an explanation
    limits: Limits
    first_row: bool  # whether the row itself is a sample of a run
    run_of: Callable[[int], SingleRun]
    scatter: Callable[[], RunScatter]  # of runs of the explanation, with Var_Q f

    @property
    def law(self) -> LimeLaw:
        """The law of the samples."""
        return self.subject.law

    @property
    def points(self) -> Points:
        """The rows, encoded."""
        return self.subject.points

    @property
    def run(self) -> SingleRun:
        return self.run_of(self.n_samples)

    @cached_property
    def finite(self) -> FiniteFit:
        first = self.values if self.first_row else None
        return expected(self.limits, first, self.n_samples, self.ridge, self.first_row)

    def signs(self) -> SignsAround | Reason:
        exact = self.subject.exact
        return ESTIMATED if exact is None else signs_around(exact, self.points)

    @property
    def gap_size(self) -> Values:
        return np.sqrt(self.scatter().variance)

    def cell_sd(self, rows: Indices) -> Values:
        """The standard deviation of f in the cell of each of some rows."""
        uniforms = np.random.default_rng(0).random((_IN_CELL, self.beta.shape[1]))
        points, alpha = self.points[rows], self.limits.alpha[rows]
        widths, parts = self.law.widths(points), [np.zeros(0)]
        for some in BATCH_BUDGET.blocks(len(rows), 3 * uniforms.nbytes):
            # bits are 1 where u < α
            inside = uniforms * alpha[some, None, :]
            draws = draws_at(self.law.columns, points[some], widths[some], inside)
            parts.append(evaluated(self.subject.evaluate, draws.samples).std(axis=1))
        return np.concatenate(parts)

    @cached_property
    def profiles(self) -> tuple[Array, ...]:
        """h_j(b) = E_Q[f | b_j = b] of each column, (N, B_j); NaN in empty bins."""
        if self.subject.exact is None and self.common is not None:
            return tuple(means for means, _ in self._estimated)
        return self.quick.profiles(self.points)

    @cached_property
    def _estimated(self) -> list[tuple[Array, Array]]:
        """Profiles from draws that rows share, and their errors."""
        if self.common is None:
            raise Refused("too few of the draws that rows share count at a row")
        return self.common.means(self.points, self.law.widths(self.points))

    @cached_property
    def profile_errors(self) -> tuple[Array, ...]:
        """Errors of the profiles: of rounding where exact, else standard ones."""
        exact = self.subject.exact
        if exact is None:
            return tuple(errors for _, errors in self._estimated)
        products = exact.function
        means = exact.factor_means(self.points, self.law.widths(self.points))
        sizes = np.maximum(np.abs(means.one), np.abs(means.zero)).max(axis=1)
        each = np.append(sizes, 1.0)[products.paths].prod(axis=1)
        scale = abs(products.base) + float(np.abs(products.values) @ each)
        error = 16.0 * np.finfo(float).eps * scale
        return tuple(np.full(h.shape, error) for h in self.profiles)

    @cached_property
    def interactions(self) -> Values:
        """1 − Σ_j Var_Q E_Q[f | V_j] / Var_Q f, (N,); 1 where it is not known.

        It is 0 of additive functions, whose coefficients are the same at all widths.
        """
        widths, total = self.law.widths(self.points), self.scatter().variance
        if self.subject.exact is not None:
            held = additive_variance(self.subject.exact, self.points, widths)
        elif self.common is not None:
            held = self.common.additive_variances(self.points, widths)
        else:
            return np.ones(len(total))
        shares = np.ones(len(total))
        np.divide(held, total, out=shares, where=total > 0.0)
        return np.clip(1.0 - shares, 0.0, 1.0)

    @property
    def about(self) -> str:
        """What is said before numbers that are estimated beside the coefficients."""
        return "" if self.is_exact else "an estimated "

    @cached_property
    def common(self) -> CommonDraws | None:
        """Draws for all rows at once; None where too few of them count for a row."""
        common, widths = self.subject.common, self.law.widths(self.points)
        if common is None or not common.enough(self.points, widths).all():
            return None
        return common

    def announced(self, progress: bool | None) -> AbstractContextManager[None]:
        """Say what draws around each row cost that are made within, if that is long."""
        if self.common is not None:
            return nullcontext()
        each = _IN_CELL + 2 * 4096
        if self.subject.exact is None:
            bins = sum(len(column.bins) for column in self.law.columns)
            each += bins * self.quick.draws.n_samples
        expected = len(self.points) * each
        told = self.subject.function, self.points, self.subject.labels, expected
        return announced_cost("diagnosis", *told, progress)

    @cached_property
    def quick(self) -> LimeSubject:
        """The subject with fewer draws: places beside rows are many."""
        fewest, draws = max(_QUICK, 4 * (self.beta.shape[1] + 10)), self.subject.draws
        plan = DrawPlan(min(draws.n_samples, fewest), draws.seed)
        return replace(self.subject, draws=plan)

    @cached_property
    def coded(self) -> Mask:
        """Which columns are categories, (D,)."""
        columns = binned_columns(self.law)
        return np.array([column is not None and column.coded for column in columns])

    def rebinned(self, rows: Indices, j: int, n_bins: int) -> Values:
        """β_j of some rows with other bins in column j; NaN where there are none."""
        law: Any = self.law
        column, unknown = None, np.full(len(rows), np.nan)
        if n_bins >= 2 and isinstance(law, TabularLaw | GaussianLaw):
            known = self.subject.has_table
            table = self.subject.reference[:, j] if known else None
            column = with_bins(law.columns[j], n_bins, table)
        if column is None:
            return unknown
        columns = (*law.columns[:j], column, *law.columns[j + 1 :])
        law = replace(law, columns=columns)
        try:
            limits = replace(self.quick, law=law, known={}).limits(self.points[rows])
        except Refused:
            return unknown
        return np.asarray(limits.coefficients[:, j])


# ---- One document, its words, and what the model sees of them


@final
@dataclass(frozen=True, eq=False)
class ObservedWords:
    """What a model sees of each of the d words of a document."""

    known: Mask  # (d,): whether it feeds any feature
    # (d,): how many words, itself among them, feed a feature that it feeds: the most
    alike: Indices
    beside: tuple[str, ...]  # (d,): that feature; empty where there is none
    # why features are not made of single words, a sentence for each vectoriser
    crossing: tuple[str, ...]

    @classmethod
    def of(cls, vectorisers: Sequence[Any], document: TextDocument) -> ObservedWords:
        """What vectorisers, all that the model sees of texts, make of the words."""
        d = document.n_words
        alike, beside, crossing = np.zeros(d, np.intp), [""] * d, []
        for one in vectorisers:
            vectoriser = Vectoriser.of(one)
            if isinstance(vectoriser, Reason):
                crossing.append(vectoriser.reason)
                continue
            result = document_features(vectoriser, document)
            if isinstance(result, Reason):
                crossing.append(result.reason)
                continue
            _, place, often = np.unique(
                result.feature, return_inverse=True, return_counts=True
            )
            entries = zip(result.feature, result.word, often[place], strict=True)
            for feature, word, count in entries:
                if count > alike[word]:
                    alike[word], beside[word] = count, vectoriser.name_of(int(feature))
        known = (alike > 0) | bool(crossing)
        return cls(known, alike, tuple(beside), tuple(crossing))


PACKAGE_RIDGE: Final = 1.0
"""The package's."""

MANY_WORDS: Final = 500
"""Of documents with more tables, cards and rules compute neither runs nor paths."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TextEvidence(Evidence):
    """One document under diagnosis: N = 1 row of its d words."""

    noun: ClassVar[str] = "word"
    wider: ClassVar[str] = "a wider kernel, more samples, or the limits themselves"
    noisy: ClassVar[str] = (
        f"{{name!r}} is {{contrast:.2g}} from the median of all words, {_DEVIATIONS}: "
        "a run does not tell it from words that do nothing"
    )
    gap_unit: ClassVar[str] = "times the largest coefficient"
    least_ratio: ClassVar[float] = 1e-9  # the median is nothing from itself

    means: WordMeans  # what knows the limits at any bandwidth
    law: TextLaw  # how words are deleted
    # what the model sees of the words; None where that is not known
    seen: ObservedWords | None

    @classmethod
    def of(
        cls,
        record: LimeRecord,
        means: WordMeans,
        law: TextLaw,
        vectorisers: Sequence[Any],
        n_samples: int,
    ) -> TextEvidence:
        """What is known of a document before anything is computed beside it."""
        d, seen = len(record.names), None
        used = np.ones(d, bool)
        if not isinstance(means, SampledWords):
            used = np.isin(np.arange(d), used_words(means))
        if vectorisers and record.document is not None:
            seen = ObservedWords.of(vectorisers, record.document)
            used &= seen.known
        return cls(
            means=means,
            law=law,
            seen=seen,
            n_samples=n_samples,
            names=record.names,
            beta=record.coefficients[None],
            is_exact=record.is_exact,
            depends=used[None],
            effective_share=np.array([record.effective_share]),
            values=np.array([record.value]),
            at_row=np.array([record.at_row]),
            width=law.bandwidth,
            ridge=PACKAGE_RIDGE,
        )

    @cached_property
    def contrast(self) -> Array:
        """How far words are from the median of all, (1, d)."""
        return np.abs(self.beta - np.median(self.beta))

    def _refuse_many_words(self) -> None:
        """Runs and paths of long documents take too long."""
        if len(self.names) > MANY_WORDS:
            raise Refused(f"there are more than {MANY_WORDS} words")

    @cached_property
    def run(self) -> SingleRun:
        self._refuse_many_words()
        if isinstance(self.means, SampledWords):
            raise Refused(ESTIMATED.reason)
        value, n = float(self.values[0]), self.n_samples
        return single_text_run(self.means, self.law, value, n, self.ridge)

    @cached_property
    def finite(self) -> FiniteFit:
        known: Any = self.means
        if isinstance(known, SampledWords):
            known = limits_of(known, np.array([self.width]))
        value, n = float(self.values[0]), self.n_samples
        return expected_run(known, self.law, value, n, self.ridge)

    def signs(self) -> SignsAround | Reason:
        self._refuse_many_words()
        if not np.isfinite(self.width):
            return Reason("there are no weights")
        if isinstance(self.means, SampledWords):
            return ESTIMATED
        return signs_of_words(self.means, self.width)

    @property
    def gap_size(self) -> Values:
        return np.asarray(self.largest[:, 0])

    @property
    def interactions(self) -> Values:
        return np.ones(1)


NOTE: Final = 0.25
"""Severities from here on mislead; what has less is a note."""


@final
@dataclass(frozen=True, kw_only=True)
class LimeFinding:
    """What a rule found at a place, with its number; or how near a quiet one came."""

    rule: str
    # positions; None where it is about all of them
    row: int | None = field(low=0, default=None)
    column: int | None = field(low=0, default=None)
    # what was measured, NaN where the rule does not apply; and from where on it is told
    number: float = field(missing=True, infinite=True)
    threshold: float = field()
    # what it means here; that nothing was found, or why it was not looked for
    sentence: str = field()
    remedy: str = field(default="")  # what would do; empty where nothing was found
    # how much it misleads; below 0.25 it is a note
    severity: float = field(low=0.0, high=1.0, default=0.0)


# ---- What a rule of diagnosis is: numbers at rows and columns, and what to say of them


@final
@dataclass(frozen=True, eq=False)
class RuleOutcome:
    """What one rule measured: tables (N, D), numbers of rows or of columns, or one."""

    numbers: Array | float
    # how much of the largest coefficient of the row it is about, 0 to 1
    stakes: Array | float
    sentence: str  # what it means
    remedy: str  # what would do there
    # tables of numbers and words that both have in braces, by their names; if any
    told: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # why nothing is found at a place though its number passes the threshold, and where
    excuses: Mapping[str, Mask] = dataclasses.field(default_factory=dict)
    # where something is found though the number does not pass
    also: Mask | None = None


Looked = TypeVar("Looked", contravariant=True)
"""What a rule looks at: rows of a table, a document, or either."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Rule(Generic[Looked]):
    """One thing to look for."""

    name: str  # in tables
    threshold: float  # from where on something is found
    below: bool = False  # whether numbers below it are found, and not those above
    # how much it misleads where all is at stake, 0 to 1, and where nothing is
    weight: float
    least: float = 0.0
    per_row: bool = True  # whether there is a number for each
    per_column: bool = True
    # measures; gives the reason in place of numbers where the rule does not apply
    check: Callable[[Looked], RuleOutcome | Reason]

    def findings(self, case: Looked) -> Iterator[LimeFinding]:
        """All that it finds; else one that is quiet."""
        try:
            checked = self.check(case)
        except Refused as refused:
            checked = Reason(str(refused))
        if isinstance(checked, Reason):
            yield self._told(np.nan, f"not looked for: {checked.reason}")
            return
        numbers = self._table(checked.numbers)
        excuses = {why: self._table(own) for why, own in checked.excuses.items()}
        result = self._passes(numbers)
        for excused in excuses.values():
            result &= ~excused
        if checked.also is not None:
            result |= self._table(checked.also)
        stakes = np.broadcast_to(self._table(checked.stakes), numbers.shape)
        severities = self.least + (self.weight - self.least) * np.clip(stakes, 0, 1)
        told = {
            name: np.broadcast_to(self._table(own), numbers.shape)
            for name, own in checked.told.items()
        }
        for n, j in np.argwhere(result).tolist():
            here = {name: own[n, j] for name, own in told.items()}
            sentence, remedy = (
                part.format(**here) if here else part
                for part in (checked.sentence, checked.remedy)
            )
            number, severity = numbers[n, j], severities[n, j]
            yield self._told(number, sentence, remedy, (n, j), severity)
        if not result.any():
            yield self._nearest(numbers, excuses)

    def _table(self, part: Any) -> Any:
        """What was measured, with a line for each row and one place for each column."""
        own = np.asarray(part)
        if own.ndim == 2:
            return own
        return own.reshape((1, -1) if self.per_column else (-1, 1))

    def _passes(self, numbers: Array) -> Mask:
        with np.errstate(invalid="ignore"):
            if self.below:
                return np.asarray(numbers < self.threshold)
            return np.asarray(numbers > self.threshold)

    def _nearest(self, numbers: Array, excuses: Mapping[str, Mask]) -> LimeFinding:
        if np.isnan(numbers).all():
            return self._told(np.nan, "nothing found; nothing to look at")
        sign = -1.0 if self.below else 1.0
        n, j = divmod(int(np.nanargmax(sign * numbers)), numbers.shape[1])
        word = "smallest" if self.below else "largest"
        # a number that passes with nothing found was excused, and is told by what
        why = "".join(
            f", but {reason}"
            for reason, excused in excuses.items()
            if excused[n, j] and self._passes(numbers[n, j])
        )
        sentence = f"nothing found; {word} {numbers[n, j]:.3g}{why}"
        return self._told(numbers[n, j], sentence, place=(n, j))

    def _told(
        self,
        number: float,
        sentence: str,
        remedy: str = "",
        place: Sequence[int] | None = None,
        severity: float = 0.0,
    ) -> LimeFinding:
        n, j = (None, None) if place is None else place
        return LimeFinding(
            rule=self.name,
            row=n if self.per_row else None,
            column=j if self.per_column else None,
            number=float(number),
            threshold=self.threshold,
            sentence=sentence,
            remedy=remedy,
            severity=float(severity),
        )

    def in_documents(
        self, cases: Mapping[int, Looked], place: Callable[[int, int], int]
    ) -> list[LimeFinding]:
        """What it finds in all documents; else where it was nearest."""
        told = [
            replace(
                item,
                row=n,
                column=None if item.column is None else place(n, item.column),
            )
            for n, case in cases.items()
            for item in self.findings(case)
        ]
        sign = -1.0 if self.below else 1.0
        numbers = np.array([sign * item.number for item in told])
        worst = told[int(np.argmax(np.where(np.isnan(numbers), -np.inf, numbers)))]
        findings = [item for item in told if item.remedy]
        if len(findings) > 1 and not self.per_row:
            # it depends on the law and the number of words alone
            several = f"so it is of {len(findings)} of {len(cases)} documents"
            return [replace(worst, row=None, sentence=f"{worst.sentence}; {several}")]
        return findings or [worst]


def rule(
    name: str,
    *,
    above: float = np.inf,
    below: float = -np.inf,
    weight: float,
    least: float = 0.0,
    per: Literal["cell", "row", "all"] = "cell",
) -> Callable[[Callable[[Looked], RuleOutcome | Reason]], Rule[Looked]]:
    """Make a rule of the function below it: what it measures is told from there on."""
    return lambda check: Rule(
        name=name,
        threshold=below if below > -np.inf else above,
        below=below > -np.inf,
        weight=weight,
        least=least,
        per_row=per != "all",
        per_column=per == "cell",
        check=check,
    )

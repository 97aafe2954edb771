"""The evidence that rules of diagnosis use, for rows or a document, and findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Generic, Literal, TypeVar, final

import numpy as np

from propopt.base.arrays import (
    Array,
    Attributions,
    Indices,
    Mask,
    Points,
    Values,
    quotient,
)
from propopt.base.declared import field
from propopt.base.errors import Refused
from propopt.base.resources import BATCH_BUDGET
from propopt.base.text import Reason
from propopt.lime.exact_limits import Limits, additive_variance
from propopt.lime.finite_samples import (
    FiniteFit,
    RunScatter,
    SingleRun,
    expected,
    expected_run,
    single_run,
    single_text_run,
)
from propopt.lime.laws.lime_law import LimeLaw, Tilt, draws_at
from propopt.lime.paths import SignsAround, signs_around, signs_of_words
from propopt.lime.sampled_limits import (
    RUN_DRAWS,
    CommonDraws,
    LimeSubject,
    announced_cost,
    evaluated,
)
from propopt.lime.text.sampled_words import SampledWords, WordMeans
from propopt.lime.text.word_limits import TextLaw
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.tfidf.vectorisers import Vectoriser, document_features
from propopt.tables.documents import TextDocument


# ---- Evidence: an explanation, and the numbers that rules compute from its model


_IN_CELL: Final = 512
"""The number of draws in the cell of each row."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(ABC):
    """The numbers of rows of a table or one document, and runs of n samples on them."""

    ridge: float  # of one run
    n_samples: int  # of one run
    names: tuple[str, ...]  # (D,): of columns or words
    beta: Attributions  # (N, D): coefficients
    is_exact: bool  # whether their only error is rounding
    effective_share: Values  # (N,): (E π)² / E π²
    values: Values  # (N,): f
    at_row: Values  # (N,): the surrogate there

    @property
    @abstractmethod
    def width(self) -> float:
        """The width of the kernel, ν."""

    @property
    @abstractmethod
    def depends(self) -> Mask:
        """Whether f depends on the column, (N, D)."""

    @property
    @abstractmethod
    def finite(self) -> FiniteFit:
        """The mean of many runs of n samples."""

    @property
    @abstractmethod
    def run(self) -> SingleRun:
        """The mean and the covariance of one run."""

    @property
    def has_run(self) -> bool:
        """Whether runs are computed: not without coefficients or for many words."""
        return True

    @property
    def run_of_limits(self) -> SingleRun:
        """The run, refused where its noise cannot be compared with coefficients."""
        return self.run

    @abstractmethod
    def signs(self) -> SignsAround | None:
        """The changes of sign around the kernel width; None if they are unknown."""

    @property
    @abstractmethod
    def gap_size(self) -> Values:
        """The scale of gaps between f and the surrogate, (N,)."""

    @property
    @abstractmethod
    def interactions(self) -> Values:
        """The share of Var f in interactions of columns, (N,); 1 if unknown."""

    @property
    def contrast(self) -> Array:
        """The distance of coefficients from those of inactive features, (N, D)."""
        return np.abs(self.beta)

    @cached_property
    def largest(self) -> Array:
        """The largest |β| of each row, (N, 1); 1 if all of them are rounding."""
        size = np.abs(self.beta).max(axis=1, keepdims=True)
        return np.where(size > _ROUNDING * np.abs(self.values[:, None]), size, 1.0)

    @cached_property
    def sizes(self) -> Array:
        """The size |β| over the largest of the row, (N, D)."""
        return np.abs(self.beta) / self.largest


_ROUNDING: Final = 1e-12
"""Coefficients below this part of f at the row are zero."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RowsEvidence(Evidence):
    """The numbers that rules use, for rows of a table."""

    subject: LimeSubject  # the model and the law of an explanation
    first_row: bool  # whether the row itself is a sample of a run
    limits: Limits
    scatter: Callable[[], RunScatter]  # of runs of the explanation, with Var_Q f

    @property
    def law(self) -> LimeLaw:
        """The sampling law of LIME."""
        return self.subject.law

    @property
    def points(self) -> Points:
        """The rows as encoded numbers, (N, D)."""
        return self.subject.points

    @property
    def widths(self) -> Values:
        """The kernel width of each row, (N,)."""
        return self.law.widths(self.points)

    @cached_property
    def tilts(self) -> tuple[Tilt, ...]:
        """The weighted law of each column, (D,)."""
        return self.law.tilts(self.points, self.widths)

    @property
    def width(self) -> float:
        return self.law.kernel_width

    @cached_property
    def depends(self) -> Mask:
        columns = np.arange(self.beta.shape[1])
        exact = self.subject.exact
        used = columns if exact is None else exact.function.columns
        return np.broadcast_to(np.isin(columns, used), self.beta.shape)

    @cached_property
    def finite(self) -> FiniteFit:
        return expected(
            self.limits, self.values, self.n_samples, self.ridge, self.first_row
        )

    @cached_property
    def run(self) -> SingleRun:
        subject = self.subject
        rng = np.random.default_rng(subject.draws.seed)
        return single_run(
            subject.evaluate,
            self.law,
            self.points,
            self.finite,
            rng=rng,
            common=subject.common,
        )

    def signs(self) -> SignsAround | None:
        exact = self.subject.exact
        return None if exact is None else signs_around(exact, self.points)

    @property
    def gap_size(self) -> Values:
        return np.sqrt(self.scatter().variance)

    def cell_sd(self, rows: Indices) -> Values:
        """The standard deviation of f within the cell of each row."""
        uniforms = np.random.default_rng(0).random((_IN_CELL, self.beta.shape[1]))
        points = self.points[rows]
        alpha = self.limits.alpha[rows]
        widths = self.widths[rows]
        parts = [np.zeros(0)]
        for some in BATCH_BUDGET.blocks(len(rows), 3 * uniforms.nbytes):
            # bits are 1 where u < α
            inside = uniforms * alpha[some, None, :]
            draws = draws_at(self.law.columns, points[some], widths[some], inside)
            parts.append(evaluated(self.subject.evaluate, draws.samples).std(axis=1))
        return np.concatenate(parts)

    @cached_property
    def profiles(self) -> list[tuple[Array, Array]]:
        """The profiles h_j(b) = E_Q[f | b_j = b] and their errors, (N, B_j) each.

        Errors are of rounding, or standard errors of estimates; NaN in empty bins.
        """
        exact = self.subject.exact
        if exact is None:
            return self.subject.estimated_profiles(self.points)
        products = exact.function
        means = exact.factor_means(self.points, self.widths)
        sizes = np.maximum(np.abs(means.one), np.abs(means.zero)).max(axis=1)
        each = np.append(sizes, 1.0)[products.paths].prod(axis=1)
        scale = abs(products.base) + float(np.abs(products.values) @ each)
        error = 16.0 * np.finfo(float).eps * scale
        profiles = self.subject.profiles(self.points)
        return [(h, np.full(h.shape, error)) for h in profiles]

    @cached_property
    def interactions(self) -> Values:
        """The share 1 − Σ_j Var_Q E_Q[f | V_j] / Var_Q f, (N,); 1 if unknown.

        It is 0 for additive functions. Their coefficients are equal at all widths.
        """
        total = self.scatter().variance
        if self.common is not None:  # the draws of the whole variance
            additive = self.common.additive_variances(self.points, self.widths)
        elif self.subject.exact is not None:
            additive = additive_variance(self.subject.exact, self.points, self.widths)
        else:
            return np.ones(len(total))
        return np.clip(1.0 - quotient(additive, total, 1.0), 0.0, 1.0)

    @cached_property
    def common(self) -> CommonDraws | None:
        """The draws that all rows share; None if too few have weight for a row."""
        common = self.subject.common
        if common is None or not common.enough(self.points, self.widths).all():
            return None
        return common

    def announced(self, progress: bool | None) -> AbstractContextManager[None]:
        """A context that announces the cost of the draws around each row, if long."""
        if self.common is not None:
            return nullcontext()
        expected = len(self.points) * (_IN_CELL + 2 * RUN_DRAWS)
        subject = self.subject
        return announced_cost(
            "diagnosis",
            subject.function,
            self.points,
            subject.labels,
            expected,
            progress,
        )


# ---- One document, its words, and the features that they feed


@final
@dataclass(frozen=True, eq=False)
class WordFeatures:
    """The features of a model that each of the d words of a document feeds."""

    used: Mask  # (d,): whether the word feeds any feature
    # (d,): the most words, this one included, that feed one feature together
    n_sharing: Indices
    feature: tuple[str, ...]  # (d,): the feature shared by most words, or empty
    n_crossing: int  # the vectorisers whose features are not made of single words

    @classmethod
    def of(cls, vectorisers: Sequence[Any], document: TextDocument) -> WordFeatures:
        """The features of all vectorisers through which the model reads texts."""
        d = document.n_words
        n_sharing = np.zeros(d, np.intp)
        features = [""] * d
        n_crossing = 0
        for fitted in vectorisers:
            vectoriser = Vectoriser.of(fitted)
            if isinstance(vectoriser, Reason):
                n_crossing += 1
                continue
            result = document_features(vectoriser, document)
            if isinstance(result, Reason):
                n_crossing += 1
                continue
            _, inverse, counts = np.unique(
                result.feature, return_inverse=True, return_counts=True
            )
            entries = zip(result.feature, result.word, counts[inverse], strict=True)
            for feature, word, count in entries:
                if count > n_sharing[word]:
                    n_sharing[word] = count
                    features[word] = vectoriser.name_of(int(feature))
        used = (n_sharing > 0) | bool(n_crossing)
        return cls(used, n_sharing, tuple(features), n_crossing)


MANY_WORDS: Final = 500
"""Longer documents have neither runs nor paths in tables, cards and rules."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class TextEvidence(Evidence):
    """The numbers that rules use, for one document: N = 1 row of its d words."""

    ridge: float = 1.0  # of the package
    # means by number of words, which give limits at any bandwidth; None if LIME has no
    # coefficients
    means: WordMeans | None
    law: TextLaw  # how words are deleted
    document: TextDocument
    vectorisers: Sequence[Any]  # of the model; none if they are unknown

    @property
    def width(self) -> float:
        return self.law.bandwidth

    @cached_property
    def features(self) -> WordFeatures | None:
        """The features that words feed; None if the model has no known vectoriser."""
        if not self.vectorisers:
            return None
        return WordFeatures.of(self.vectorisers, self.document)

    @cached_property
    def depends(self) -> Mask:
        means = self._means
        used = np.ones(len(self.names), bool)
        if isinstance(means, Conjunctions):
            used = np.isin(np.arange(len(used)), means.columns)
        if self.features is not None:
            used &= self.features.used
        return used[None]

    @cached_property
    def contrast(self) -> Array:
        """The distance of coefficients from the median of all words, (1, d)."""
        return np.abs(self.beta - np.median(self.beta))

    @property
    def has_run(self) -> bool:
        return self.means is not None and len(self.names) <= MANY_WORDS

    @property
    def _means(self) -> Any:
        """The means, of a document with coefficients."""
        assert self.means is not None, "see has_run"
        return self.means

    @cached_property
    def finite(self) -> FiniteFit:
        value = float(self.values[0])
        return expected_run(self._means, self.law, value, self.n_samples)

    @cached_property
    def run(self) -> SingleRun:
        means = self._means
        # sampled words are evaluated at their samples alone
        draws = means.draws if isinstance(means, SampledWords) else None
        return single_text_run(means, self.law, self.finite, draws=draws)

    @property
    def run_of_limits(self) -> SingleRun:
        self._refuse_many_words()
        if not self.is_exact:
            raise Refused("coefficients are estimated")
        return self.run

    def _refuse_many_words(self) -> None:
        """Refuse runs and paths of long documents, which take too long."""
        if len(self.names) > MANY_WORDS:
            raise Refused(f"there are more than {MANY_WORDS} words")

    def signs(self) -> SignsAround | None:
        self._refuse_many_words()
        if not self.is_exact or not np.isfinite(self.width):
            return None
        return signs_of_words(self._means, self.width)

    @property
    def gap_size(self) -> Values:
        return self.largest[:, 0]

    @property
    def interactions(self) -> Values:
        return np.ones(1)


NOTE: Final = 0.25
"""The severity from which a finding misleads; less severe findings are notes."""


@final
@dataclass(frozen=True, kw_only=True)
class LimeFinding:
    """A number of a rule beyond its limit; or the closest number of a quiet rule."""

    rule: str
    # positions; None if it concerns all rows or columns
    row: int | None = field(low=0, default=None)
    column: int | None = field(low=0, default=None)
    # the measured number; NaN if the rule does not apply
    number: float = field(missing=True, infinite=True)
    # the coefficient of the row and column; NaN if it concerns several
    coefficient: float = field(missing=True, default=np.nan)
    # how much it misleads; NaN if the rule is quiet, or the number harmless
    severity: float = field(low=0.0, high=1.0, missing=True, default=np.nan)

    @property
    def is_reported(self) -> bool:
        """True if it is a finding or a note."""
        return not np.isnan(self.severity)


# ---- A rule of diagnosis: numbers for rows and columns


@final
@dataclass(frozen=True, eq=False)
class RuleOutcome:
    """The numbers of one rule: a table (N, D), one for each row or column, or one."""

    numbers: Array | float
    # the share of the largest coefficient of the row that is at stake, 0 to 1
    stakes: Array | float
    excused: Mask | None = None  # where numbers beyond the limit are harmless
    also: Mask | None = None  # findings whose number is within the limit


AnyEvidence = TypeVar("AnyEvidence", contravariant=True)
"""The evidence of a rule: rows of a table, a document, or either."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Rule(Generic[AnyEvidence]):
    """A rule of diagnosis: a measurement with a limit and a severity."""

    name: str  # in tables
    measure: str  # what its number is, in words
    # numbers beyond one of these limits are findings
    above: float = np.inf
    below: float = -np.inf
    # the severity if everything is at stake, 0 to 1, and if nothing is
    weight: float
    least: float = 0.0
    per: Literal["cell", "row", "all"] = "cell"  # what has a number
    # measures; returns None if the rule does not apply
    check: Callable[[AnyEvidence], RuleOutcome | None]

    @property
    def limit(self) -> float:
        """The limit beyond which numbers are findings."""
        return self.above if self.below == -np.inf else self.below

    @property
    def _sign(self) -> float:
        """1 if numbers above the limit are findings, −1 if those below it are."""
        return 1.0 if self.below == -np.inf else -1.0

    @property
    def criterion(self) -> str:
        """The numbers that are findings, such as "< 0.1"."""
        return f"{'>' if self._sign > 0.0 else '<'} {self.limit:.3g}"

    def findings(self, case: AnyEvidence) -> list[LimeFinding]:
        """All findings of the rule; or the closest number if there is none."""
        try:
            outcome = self.check(case)
        except Refused:
            outcome = None
        if outcome is None:
            return [self._finding(case)]
        numbers = self._table(outcome.numbers)
        alarms = self.exceeds(numbers)
        if outcome.excused is not None:
            alarms &= ~self._table(outcome.excused)
        if outcome.also is not None:
            alarms |= self._table(outcome.also)
        if not alarms.any():
            return [self._closest(case, numbers)]
        stakes = np.broadcast_to(self._table(outcome.stakes), numbers.shape)
        severities = self.least + (self.weight - self.least) * np.clip(stakes, 0, 1)
        parts = zip(numbers[alarms].tolist(), severities[alarms].tolist(), strict=True)
        places = np.argwhere(alarms).tolist()
        return [
            self._finding(case, number, n, j, severity)
            for (n, j), (number, severity) in zip(places, parts, strict=True)
        ]

    def _table(self, part: Any) -> Any:
        """Numbers with two axes, rows and columns; an axis may have length one."""
        table = np.asarray(part)
        if table.ndim == 2:
            return table
        return table.reshape((1, -1) if self.per == "cell" else (-1, 1))

    def exceeds(self, numbers: Any) -> Any:
        """True if numbers are beyond the limit."""
        with np.errstate(invalid="ignore"):
            return (numbers < self.below) | (numbers > self.above)

    def _closest(self, case: AnyEvidence, numbers: Array) -> LimeFinding:
        """The number closest to the limit, of a rule without findings."""
        if np.isnan(numbers).all():
            return self._finding(case)
        n, j = divmod(int(np.nanargmax(self._sign * numbers)), numbers.shape[1])
        return self._finding(case, float(numbers[n, j]), n, j)

    def _finding(
        self,
        case: Any,
        number: float = np.nan,
        n: int | None = None,
        j: int | None = None,
        severity: float = np.nan,
    ) -> LimeFinding:
        """A number at a row and a column; by default that of a rule not checked."""
        row = None if self.per == "all" else n
        column = j if self.per == "cell" else None
        is_of_cell = row is not None and column is not None
        return LimeFinding(
            rule=self.name,
            row=row,
            column=column,
            number=number,
            coefficient=float(case.beta[row, column]) if is_of_cell else np.nan,
            severity=severity,
        )

    def in_documents(
        self, cases: Mapping[int, AnyEvidence], column: Callable[[int, int], int]
    ) -> list[LimeFinding]:
        """The findings in all documents; or the closest number if there is none."""
        items = [
            replace(
                item,
                row=n,
                column=None if item.column is None else column(n, item.column),
            )
            for n, case in cases.items()
            for item in self.findings(case)
        ]
        numbers = self._sign * np.array([item.number for item in items])
        worst = items[int(np.argmax(np.where(np.isnan(numbers), -np.inf, numbers)))]
        findings = [item for item in items if item.is_reported]
        if len(findings) > 1 and self.per == "all":
            # it depends only on the law and the number of words
            return [replace(worst, row=None)]
        return findings or [worst]


def rule(
    name: str, measure: str, **settings: Any
) -> Callable[[Callable[[AnyEvidence], RuleOutcome | None]], Rule[AnyEvidence]]:
    """Decorate a measurement as a rule with the limit and severity of its fields."""
    return lambda check: Rule(name=name, measure=measure, check=check, **settings)

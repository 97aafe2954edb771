"""What a rule of diagnosis is given, and what it finds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Truths, Values
from propopt.base.declared import stored
from propopt.base.errors import Refused
from propopt.base.resources import AT_ONCE, DrawPlan
from propopt.base.terminal import progress_bar
from propopt.base.text import Reason
from propopt.lime.expectations import Limits, with_bins
from propopt.lime.fidelity import additive_variance
from propopt.lime.laws.binned_columns import binned_columns
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import LimeLaw, draws_at
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.single_runs import FiniteFit, RunScatter, SingleRun, expected
from propopt.lime.surrogates import CommonDraws, LimeSubject, cost_told, evaluated


# ---- What rules of diagnosis look at: an explanation, and what is computed beside it


_IN_CELL: Final = 512
"""Draws in the cell of each row."""

_QUICK: Final = 1000
"""Draws for each place beside a row."""


DEVIATIONS: Final = (
    "{ratio:.2g} standard deviations of a run of {n:,} samples (sd {sd:.2g})"
)
"""How far a coefficient is from what does nothing, in a sentence."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence(ABC):
    """What rules look at: rows of a table, or one document, and runs of n samples."""

    noun: ClassVar[str]  # what has coefficients
    wider: ClassVar[str]  # what would do where few samples count
    noisy: ClassVar[str]  # what is so many DEVIATIONS, and what that means
    least_ratio: ClassVar[float] = 0.0  # of contrast and noise
    n_samples: int  # of one run
    names: tuple[str, ...]  # of columns, or words, (D,)
    beta: Attributions  # coefficients (N, D)
    is_exact: bool  # whether these have no error but rounding
    # (N, D): whether β_j is not exactly zero for want of the column in f
    depends: Truths
    effective_share: Values  # (N,): (E π)² / E π²

    @property
    @abstractmethod
    def run(self) -> SingleRun:
        """One run: its mean and its covariance; refused where f is not known."""

    @property
    def contrast(self) -> Array:
        """How far coefficients are from those of what does nothing, (N, D)."""
        return np.abs(self.beta)

    @cached_property
    def largest(self) -> Array:
        """The largest |β| of each row, (N, 1); 1 where all are zero."""
        size = np.abs(self.beta).max(axis=1, keepdims=True)
        return np.where(size > self._rounding, size, 1.0)

    @property
    def _rounding(self) -> float:
        """Of coefficients that are zero."""
        return 0.0

    @property
    def words(self) -> Array:
        """Names as a table of text, (D,)."""
        return np.array(self.names, object)

    @cached_property
    def sizes(self) -> Array:
        """|β| over the largest of the row, (N, D)."""
        return np.asarray(np.abs(self.beta) / self.largest)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RowsEvidence(Evidence):
    """Rows of a table under diagnosis."""

    noun: ClassVar[str] = "column"
    wider: ClassVar[str] = (
        "a wider kernel, or exact limits, or GLIME's samples of the neighbourhood"
    )
    noisy: ClassVar[str] = (
        f"the coefficient {{beta:.3g}} is {DEVIATIONS}: its sign depends on the seed"
    )

    subject: LimeSubject  # the model and the law of an explanation
    limits: Limits
    values: Values  # (N,): f at the rows
    ridge: float  # of one run
    first_row: bool  # whether the row itself is a sample of it
    run_of: Callable[[int], SingleRun]
    scatter: Callable[[], RunScatter]  # of runs of the explanation, with Var_Q f

    @cached_property
    def law(self) -> LimeLaw:
        """The law of the samples."""
        return self.subject.law

    @cached_property
    def points(self) -> Points:
        """The rows, encoded."""
        return self.subject.points

    @cached_property
    def run(self) -> SingleRun:
        """One run: its mean and its covariance."""
        return self.run_of(self.n_samples)

    @cached_property
    def finite(self) -> FiniteFit:
        """The mean of runs."""
        return expected(
            self.limits, self.values, self.n_samples, self.ridge, self.first_row
        )

    def cell_sd(self, rows: Positions) -> Values:
        """The standard deviation of f in the cell of each of some rows."""
        uniforms = np.random.default_rng(0).random((_IN_CELL, self.beta.shape[1]))
        points, alpha = self.points[rows], self.limits.alpha[rows]
        widths, parts = self.law.widths(points), [np.zeros(0)]
        for some in AT_ONCE.blocks(len(rows), 3 * uniforms.nbytes):
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

    @cached_property
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
        return cost_told("diagnosis", *told, progress)

    @cached_property
    def quick(self) -> LimeSubject:
        """The subject with fewer draws: places beside rows are many."""
        fewest = max(_QUICK, 4 * (self.beta.shape[1] + 10))
        return replace(
            self.subject,
            draws=DrawPlan(
                min(self.subject.draws.n_samples, fewest), self.subject.draws.seed
            ),
        )

    @cached_property
    def coded(self) -> Truths:
        """Which columns are categories, (D,)."""
        columns = binned_columns(self.law)
        return np.array([column is not None and column.coded for column in columns])

    def moved(self, where: Truths, values: Array) -> Array:
        """β_j with rows moved to values (N, D) along column j, where that is asked."""
        n, j = np.nonzero(where)
        result = self.beta.copy()
        if len(n) > 0:
            points = self.points[n]
            points[np.arange(len(n)), j] = values[n, j]
            limits = self.quick.limits(points)
            result[n, j] = limits.coefficients[np.arange(len(n)), j]
        return result

    def rebinned(self, rows: Positions, j: int, n_bins: int) -> Values:
        """β_j of some rows with other bins in column j; NaN where there are none.

        ∂ E_Q f / ∂ E g_u does not depend on the law of the column of factor u.
        """
        points, column = self.points[rows], None
        law: Any = self.law
        if n_bins >= 2 and isinstance(law, TabularLaw | GaussianLaw):
            known = self.subject.has_table
            table = self.subject.reference[:, j] if known else None
            column = with_bins(law.columns[j], n_bins, table)
        if column is None:
            return np.full(len(rows), np.nan)
        if self.subject.exact is None:
            columns = (*law.columns[:j], column, *law.columns[j + 1 :])
            law = replace(law, columns=columns)
            other = replace(self.quick, law=law, known={})
            try:
                return np.asarray(other.limits(points).coefficients[:, j])
            except Refused:
                return np.full(len(rows), np.nan)
        tilt = column.tilt(points[:, j], law.widths(points))
        result = np.zeros(len(rows))
        for numbers, factors in self.subject.exact.function.of_column(j):
            one, zero = tilt.given(tilt.pieces.expect(factors))
            slopes = self._slopes[numbers][:, rows]
            result += np.einsum("un,un->n", slopes, one - zero)
        return np.asarray(result * tilt.has_contrast)

    @cached_property
    def _slopes(self) -> Array:
        """∂ E_Q f / ∂ E g_u of a sum of products, (U, N)."""
        exact = self.subject.exact
        assert exact is not None
        means = exact.factor_means(self.points, self.law.widths(self.points))
        return exact.function.slopes(means.mean)[1]


NOTE: Final = 0.25
"""Severities from here on mislead; what has less is a note."""


@final
@dataclass(frozen=True, kw_only=True)
class LimeFinding:
    """What a rule found at a place, with its number; or how near a quiet one came."""

    rule: str
    # positions; None where it is about all of them
    row: int | None = stored(low=0, default=None)
    column: int | None = stored(low=0, default=None)
    # what was measured, NaN where the rule does not apply; and from where on it is told
    number: float = stored(missing=True, infinite=True)
    threshold: float = stored()
    # what it means here; that nothing was found, or why it was not looked for
    sentence: str = stored()
    remedy: str = stored(default="")  # what would do; empty where nothing was found
    # how much it misleads; below 0.25 it is a note
    severity: float = stored(low=0.0, high=1.0, default=0.0)


# ---- What a rule of diagnosis is: numbers at rows and columns, and what to say of them


@final
@dataclass(frozen=True, eq=False)
class Gauged:
    """What one rule measured: tables (N, D), numbers of rows or of columns, or one."""

    numbers: Array | float
    # how much of the largest coefficient of the row it is about, 0 to 1
    stakes: Array | float
    sentence: str  # what it means
    remedy: str  # what would do there
    # tables of numbers and words that both have in braces, by their names; if any
    told: Mapping[str, Any] = field(default_factory=dict)
    # why nothing is found at a place though its number passes the threshold, and where
    excuses: Mapping[str, Truths] = field(default_factory=dict)
    # where something is found though the number does not pass
    also: Truths | None = None


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
    check: Callable[[Looked], Gauged | Reason]

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
        places = np.argwhere(result).tolist()
        told = {
            name: np.broadcast_to(self._table(own), numbers.shape)
            for name, own in checked.told.items()
        }
        for n, j in places:
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

    def _passes(self, numbers: Array) -> Truths:
        with np.errstate(invalid="ignore"):
            if self.below:
                return np.asarray(numbers < self.threshold)
            return np.asarray(numbers > self.threshold)

    def _nearest(self, numbers: Array, excuses: Mapping[str, Truths]) -> LimeFinding:
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


def rule(
    name: str,
    *,
    above: float = np.inf,
    below: float = -np.inf,
    weight: float,
    least: float = 0.0,
    per: Literal["cell", "row", "column", "all"] = "cell",
) -> Callable[[Callable[[Looked], Gauged | Reason]], Rule[Looked]]:
    """Make a rule of the function below it: what it measures is told from there on."""
    return lambda check: Rule(
        name=name,
        threshold=below if below > -np.inf else above,
        below=below > -np.inf,
        weight=weight,
        least=least,
        per_row=per in ("cell", "row"),
        per_column=per in ("cell", "column"),
        check=check,
    )


def told_by(
    rules: Sequence[Rule[Looked]],
    find: Callable[[Rule[Looked]], Iterable[LimeFinding]],
    progress: bool | None,
) -> list[LimeFinding]:
    """What rules find, one after the other, with a bar."""
    told: list[LimeFinding] = []
    with progress_bar("diagnosis", len(rules), progress) as bar:
        for rule in rules:
            told += find(rule)
            bar.advance(bar.task_ids[0])
    return told

"""What n samples make of limits on texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.special import logsumexp

from propopt.base.arrays import Array, Positions, Truths, Values
from propopt.base.checks import read_count, read_nonnegative
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.lime.moments import ExchangeableBits, WeighedWords
from propopt.lime.single_runs import (
    RUNS_AT_ONCE,
    FiniteFit,
    Selection,
    SingleRun,
    covariances_of,
    expected,
    named_selection,
)
from propopt.lime.text.text_reading import TextLaw, WordCoefficients, WordRegression
from propopt.lime.text.word_patterns import Patterns, SizeSystem, used_words
from propopt.structures.subsets.sets import SetFunction, SizeMeans


# ---- Sets of words with values, and how much each counts in means over all samples


@final
@dataclass(frozen=True, eq=False)
class WordDraws:
    """S sets of words, values of f there, and what stands for all of their size."""

    bits: Truths  # (S, d): which words are kept
    values: Values  # (S,): f there

    def __post_init__(self) -> None:
        if self.bits.ndim != 2 or self.values.shape != self.bits.shape[:1]:
            raise InvalidInput(
                f"draws: expected bits (S, d) and as many values, got shapes "
                f"{self.bits.shape} and {self.values.shape}"
            )

    @classmethod
    def of_sizes(
        cls,
        value: Callable[[Truths], Values],
        log_shares: Values,  # shape (d + 1,)
        n_draws: int,
        rng: np.random.Generator,
    ) -> WordDraws:
        """Uniform sets, evenly of the sizes that count."""
        shares = np.exp(log_shares - log_shares.max())
        ends = np.cumsum(shares) / shares.sum()
        even = (np.arange(read_count(n_draws, "n_draws")) + rng.random()) / n_draws
        sizes = np.minimum(np.searchsorted(ends, even), np.flatnonzero(shares).max())
        ranks = rng.random((n_draws, len(shares) - 1)).argsort(axis=1).argsort(axis=1)
        bits = ranks < sizes[:, None]
        return cls(bits, value(bits))

    @property
    def sizes(self) -> Positions:
        """How many words each keeps, (S,)."""
        return np.asarray(self.bits.sum(axis=1), np.intp)

    def shares(self, log_shares: Values) -> Values:
        """What each draw counts where sizes have given shares, (S,), in all 1.

        log_shares (d + 1,).
        """
        there = np.bincount(self.sizes, minlength=len(log_shares))
        logs = np.where(there > 0, log_shares, -np.inf)
        if not np.isfinite(logs).any():
            raise InvalidInput("draws: none keeps as many words as samples with weight")
        each = np.exp(logs - logs.max()) / np.maximum(there, 1)
        return np.asarray(each[self.sizes] / each[self.sizes].sum())


# ---- How much samples count in the mean of runs: less where they pull the fit


_MOST_STEPS: Final = 20_000
_SETTLED: Final = 1e-13


def effective_log_weights(
    law: TextLaw,
    n_words: int,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    n_kept: int | None = None,
) -> Values:
    """Log weights that samples have in the mean of runs, (d + 1,).

    A sample with the leverage q = Zᵀ A⁻¹ Z moves the fit to itself, and counts as π̃ =
    π / (1 + π q), A = (n − 1) E[π̃ Z Zᵀ] + v vᵀ + λ D: found by fixed-point steps.
    """
    fitted = 1 + (n_words if n_kept is None else n_kept)
    read_count(n_samples, "n_samples")
    if read_nonnegative(ridge, "ridge") == 0.0 and n_samples <= fitted:
        raise InvalidInput(
            f"n_samples: without ridge expected more than {fitted} for as many "
            f"coefficients, got {n_samples}"
        )
    logs = law.log_weights(n_words)
    ratio, unit = np.ones(n_words + 1), float(logs.max())
    for _ in range(_MOST_STEPS):
        before, own = ratio, logs + np.log(ratio)
        system = SizeSystem.of_run(own, n_samples, ridge, first_row, unit)
        ratio = 1.0 / (1.0 + system.pulls(logs, n_kept))
        if np.abs(ratio - before).max() < _SETTLED:
            break
    return np.asarray(logs + np.log(ratio))


# ---- The fit to n samples around a document, in its mean


@final
@dataclass(frozen=True, eq=False)
class TextFit:
    """The fit to n samples around one document, in its mean."""

    fit: FiniteFit  # in one situation
    limits: WeighedWords  # what it is made of
    log_weights: Values  # (d + 1,): of sizes, as they count in the mean of runs
    first_row: bool  # whether the document itself is a sample

    @classmethod
    def of(
        cls,
        function: SizeMeans | WordCoefficients,
        law: TextLaw,
        value: float | None,
        n_samples: int,
        ridge: float = 1.0,
        first_row: bool = True,
        kept: Truths | None = None,
        leverage: bool = True,
    ) -> TextFit:
        """That of :func:`expected_run`: see there."""
        if isinstance(function, WordCoefficients):
            n_words, own = function.coefficients.shape[1], value
        else:
            n_words = function.n_words
            own = float(function.mean_by_size()[-1]) if value is None else value
        some = None if kept is None else read_kept(kept, n_words)
        logs = law.log_weights(n_words)
        if isinstance(function, WordCoefficients):
            own_limits = function
        else:
            if leverage:
                n_kept = None if some is None else int(some.sum())
                logs = effective_log_weights(
                    law, n_words, n_samples, ridge, first_row, n_kept
                )
            shares = np.exp(logs - logs.max())
            own_limits = WordRegression(function).weighed(shares[None])
        bits = ExchangeableBits.of_sizes(logs[None] - np.log(n_words))
        limits = WeighedWords(own_limits.coefficients, own_limits.intercept, bits)
        values = None if own is None else np.array([own])
        fit = expected(limits, values, n_samples, ridge, first_row, some)
        return cls(fit, limits, logs, first_row)

    @property
    def log_mean_square(self) -> float:
        """Log E π²."""
        return float(logsumexp(2.0 * self.log_weights)) - np.log(self.n_words)

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return len(self.log_weights) - 1


def read_kept(kept: Truths, n_words: int) -> Truths:
    """Which words are fitted, (1, d)."""
    some = np.asarray(kept)
    if some.shape != (n_words,) or some.dtype != np.bool_:
        raise InvalidInput(
            f"kept: expected {n_words} truths, got shape {some.shape} of {some.dtype}"
        )
    return some[None]


# ---- What LIME on a text gives with n samples, in the mean of runs


def expected_run(
    function: SizeMeans | WordCoefficients,
    law: TextLaw,
    value: float | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    kept: Truths | None = None,  # shape (d,)
    *,
    leverage: bool = True,
) -> FiniteFit:
    """What the package ``lime`` gives with n samples, in the mean of runs.

    The solution of ((n − 1) Σ̃ + v vᵀ + λ D) b = (n − 1) Γ̃ + v f(ξ), v = (1, ..., 1),
    D = diag(0, 1, ..., 1). Without ``leverage`` it holds for n much larger than d only.
    """
    return TextFit.of(
        function, law, value, n_samples, ridge, first_row, kept, leverage
    ).fit


# ---- How far one run of LIME on a text is off what such runs give in their mean


_MOST_USED: Final = 12
"""Words that f or the fit tells apart, up to which the scatter is summed, not drawn."""

_ONE: Final = np.zeros(1, np.intp)


def single_text_run(
    function: SetFunction,
    law: TextLaw,
    value: float | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    kept: Truths | None = None,
    *,
    leverage: bool = True,
    draws: WordDraws | None = None,
    n_draws: int = 4096,
    rng: np.random.Generator | None = None,
) -> SingleRun:
    """Mean and covariance of the coefficients of one run of LIME on a text.

    The sandwich of :func:`~propopt.lime.single_runs.single_run`, with effective weights
    and, in r², the scatter of the fit itself, so that it is right for few samples too.
    """
    own = TextFit.of(function, law, value, n_samples, ridge, first_row, kept, leverage)
    width = own.n_words + 1
    label = f"covariances of {width} coefficients"
    require_memory(6 * 8 * width**2, label, "explain a shorter text")
    if draws is None:
        used = used_words(function, kept)
        if len(used) <= _MOST_USED:
            # log of what sizes count under the law of π², in all 1
            shares = 2.0 * own.log_weights - np.log(own.n_words) - own.log_mean_square
            second = _summed(own, Patterns.of(function, used, shares))
            return _run(own, second, ridge, leverage)
        generator = np.random.default_rng(0) if rng is None else rng
        draws = WordDraws.of_sizes(
            function.value, 2.0 * own.log_weights, n_draws, generator
        )
    return _run(own, _drawn(own, draws), ridge, leverage)


def _summed(own: TextFit, patterns: Patterns) -> Array:
    """E r² ψ ψᵀ over all sets: ψ = N A⁻¹ Z is linear in Z."""
    fit, d = own.fit, own.n_words
    ends = np.concatenate([np.zeros((1, d)), np.eye(d)])
    psi = fit.influences(_ONE, ends[None])[0]
    psi[1:] -= psi[0]
    moment = patterns.second(float(fit.intercept[0]), fit.coefficients[0])
    return np.asarray(psi.T @ moment @ psi)


def _drawn(own: TextFit, draws: WordDraws) -> Array:
    """E r² ψ ψᵀ over draws."""
    fit, d = own.fit, own.n_words
    shares = draws.shares(2.0 * own.log_weights)
    second = np.zeros((d + 1, d + 1))
    for some in RUNS_AT_ONCE.blocks(len(shares), 24 * (d + 1)):
        bits = draws.bits[some].astype(float)
        r = draws.values[some] - fit.intercept[0] - bits @ fit.coefficients[0]
        moved = fit.influences(_ONE, bits[None])[0] * r[:, None]
        second += (moved * shares[some, None]).T @ moved
    return second


def _run(own: TextFit, second: Array, ridge: float, leverage: bool) -> SingleRun:
    fit = own.fit
    squares = np.array([own.log_mean_square])
    covariance = covariances_of(fit, _ONE, second[None], squares)
    if leverage and fit.kept is None:
        logs, unit = own.log_weights, float(own.log_weights.max())
        system = SizeSystem.of_run(logs, fit.n_samples, ridge, own.first_row, unit)
        counts = fit.n_drawn / own.n_words * np.exp(2.0 * (logs - unit))
        covariance[0] += system.spread_by_fit(counts, covariance[0])
    return SingleRun(fit.n_samples, fit.coefficients, fit.intercept, covariance)


# ---- Which words LIME keeps where it is to keep a few


_RIDGE = 0.01
"""The package's, of the fit whose weights are compared."""

_ALIKE = 1e-12


def kept_words(
    function: SizeMeans | WordCoefficients,
    law: TextLaw,
    value: float | None,
    n_kept: int,
    how: Selection = "auto",
    *,
    n_samples: int = 5000,
    first_row: bool = True,
) -> Truths:
    """The words that runs of n samples keep, by their mean normal equations, (d,).

    Bits are not independent, so that a word that is left out changes the coefficients
    of those that are kept. Of words that are alike the first are kept.
    """
    chosen = named_selection(how, read_count(n_kept, "n_kept"))
    ridge = _RIDGE if chosen == "highest_weights" else 0.0
    own = TextFit.of(
        function, law, value, n_samples, ridge, first_row, leverage=ridge > 0.0
    )
    if chosen == "highest_weights":
        order = _largest_first(np.abs(own.fit.coefficients[0]))[:n_kept]
    else:
        order = _forward(own, min(n_kept, own.n_words))
    return np.isin(np.arange(own.n_words), order)


def _forward(own: TextFit, n_kept: int) -> Positions:
    """Words in the order in which they explain most of what is left.

    The covariance of k bits has two eigenvalues, so that k of them explain
    Σ (c_j − c̄)² / P + k c̄² / L_k for their covariances c with f: of each candidate by
    its c, Σ c and Σ c² of those that are in.
    """
    c, along, apart = _covariances(own)
    order: list[int] = []
    d = own.n_words
    for k in range(1, n_kept + 1):
        total = c[order].sum() + c
        squares = (c[order] ** 2).sum() + c**2
        level = (1.0 - k / d) * apart + k / d * along
        explained = (squares - total**2 / k) / apart + total**2 / k / level
        explained[order] = -np.inf
        order.append(int(_largest_first(explained)[0]))
    return np.array(order)


def _covariances(own: TextFit) -> tuple[Values, float, float]:
    """Cov(z, f) and the eigenvalues of Cov(z), with the document as a sample."""
    fit, bits = own.fit, own.limits.bits
    c = bits.covariances(own.limits.coefficients)[0]
    along, apart = float(bits.along[0]), float(bits.apart[0])
    if fit.values is None:
        return c, along, apart
    off, weight = 1.0 - float(bits.share[0]), float(fit.total[0]) + 1.0
    c = c + off / weight * float(fit.values[0] - own.limits.mean[0])
    return c, along + own.n_words * off**2 / weight, apart


def _largest_first(sizes: Values) -> Positions:
    """Places by size, where rounding is no difference: then the first comes first."""
    finite = sizes[np.isfinite(sizes)]
    unit = _ALIKE * float(np.abs(finite).max(initial=0.0)) or 1.0
    return np.argsort(-np.round(sizes / unit), kind="stable")

"""The fit to n samples around a document, in its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp

from propopt._typing import Array, Attributions, Truths, Values
from propopt.errors import InvalidInput
from propopt.lime.finite import FiniteFit
from propopt.lime.moments import ExchangeableBits
from propopt.lime.text.finite.leverage import effective_log_weights
from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import ExactWordLimits, WordLimits
from propopt.structures.subsets import SizeMeans


@final
@dataclass(frozen=True, eq=False)
class WeighedWords:
    """Limits under weights of sizes, with the moments of bits, in n situations.

    Parameters
    ----------
    coefficients : array (n, d)
        β.
    intercept : array (n,)
        β_0.
    bits : ExchangeableBits
        Of the words that are kept.
    """

    coefficients: Attributions
    intercept: Values
    bits: ExchangeableBits

    @classmethod
    def of(cls, function: SizeMeans, log_weights: Array) -> WeighedWords:
        """Those of a function under log weights of sizes (n, d + 1)."""
        shares = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        limits = ExactWordLimits(function).weighed(shares)
        return cls.of_limits(limits, log_weights)

    @classmethod
    def of_limits(cls, limits: WordLimits, log_weights: Array) -> WeighedWords:
        """The same where limits are known."""
        bits = ExchangeableBits.of_sizes(log_weights - np.log(log_weights.shape[1] - 1))
        return cls(limits.coefficients, limits.intercept, bits)

    @property
    def mean(self) -> Values:
        """E_Q f, (n,)."""
        kept = self.bits.share * self.coefficients.sum(axis=1)
        return np.asarray(self.intercept + kept)


@final
@dataclass(frozen=True, eq=False)
class TextFit:
    """The fit to n samples around one document, in its mean.

    Parameters
    ----------
    fit : FiniteFit
        In one situation.
    limits : WeighedWords
        What it is made of.
    log_weights : array (d + 1,)
        Of sizes, as they count in the mean of runs.
    first_row : bool
        Whether the document itself is a sample.
    """

    fit: FiniteFit
    limits: WeighedWords
    log_weights: Values
    first_row: bool

    @classmethod
    def of(
        cls,
        function: SizeMeans | WordLimits,
        law: TextLaw,
        value: float | None,
        n_samples: int,
        ridge: float = 1.0,
        first_row: bool = True,
        kept: Truths | None = None,
        leverage: bool = True,
    ) -> TextFit:
        """That of :func:`expected_run`: see there."""
        if isinstance(function, WordLimits):
            n_words, own = function.coefficients.shape[1], value
        else:
            n_words = function.n_words
            own = float(function.mean_by_size()[-1]) if value is None else value
        some = None if kept is None else read_kept(kept, n_words)
        logs = law.log_weights(n_words)
        if isinstance(function, WordLimits):
            limits = WeighedWords.of_limits(function, logs[None])
        else:
            if leverage:
                n_kept = None if some is None else int(some.sum())
                logs = effective_log_weights(
                    law, n_words, n_samples, ridge, first_row, n_kept
                )
            limits = WeighedWords.of(function, logs[None])
        values = None if own is None else np.array([own])
        fit = FiniteFit.of(limits, values, n_samples, ridge, first_row, some)
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

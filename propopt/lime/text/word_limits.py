"""The law of deleted words, exact limits on texts, and checks of text models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from scipy.special import logsumexp, softmax

from propopt.base.arrays import Array, Attributions, Indices, Mask, Values, quotient
from propopt.base.checks import read_positive
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.functions.jumps import allowed_difference
from propopt.functions.outputs import precision_of
from propopt.functions.texts import TextFunction
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.structures.subsets.sets import SetFunction, SizeMeans, random_sets
from propopt.tables.documents import TextDocument


# ---- Exchangeable bits: only the number of ones matters


@final
@dataclass(frozen=True, eq=False)
class ExchangeableBits:
    """Bits of the words of a text: all sets of m remaining words are equally likely.

    Cov_Q(z) has two eigenvalues: Var_Q(m) / d along (1, ..., 1), and
    (α_1 − α_2) / α_0 = E_Q[m (d − m)] / (d (d − 1)) on all that sums to 0.
    """

    log_sizes: Array  # (n, d + 1): log E[π; m words remain] of m = 0, ..., d; d ≥ 2

    @cached_property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.log_sizes.shape[1] - 1

    def at(self, rows: slice | Indices, /) -> ExchangeableBits:
        """The bits of some situations."""
        return ExchangeableBits(self.log_sizes[rows])

    @cached_property
    def log_weight(self) -> Values:
        """Log E π, (n,)."""
        return logsumexp(self.log_sizes, axis=1)

    @cached_property
    def _shares(self) -> Array:
        """The probabilities of sizes, (n, d + 1)."""
        return softmax(self.log_sizes, axis=1)

    @cached_property
    def _lost(self) -> Values:
        """D − 1 − m for sizes m, so that sums over the heaviest size stay small."""
        return np.asarray(self.n_words - 1.0 - np.arange(self.n_words + 1))

    @cached_property
    def off_mean(self) -> Array:
        """The deviations m − E_Q m of sizes from their mean, (n, d + 1)."""
        return (self._shares @ self._lost)[:, None] - self._lost

    @cached_property
    def spread(self) -> Values:
        """The squared length m (d − m) / d of z orthogonal to (1, ..., 1), (d + 1,)."""
        sizes = self.n_words - 1.0 - self._lost
        return sizes * (self._lost + 1.0) / self.n_words

    @cached_property
    def share(self) -> Values:
        """The probability Q(z_j = 1) of any word, (n,)."""
        return (self.n_words - 1.0 - self._shares @ self._lost) / self.n_words

    @cached_property
    def along(self) -> Values:
        """The eigenvalue of the covariance along (1, ..., 1), (n,)."""
        return (self._shares * self.off_mean**2).sum(axis=1) / self.n_words

    @cached_property
    def apart(self) -> Values:
        """The eigenvalue of the covariance on vectors with the sum 0, (n,)."""
        return self._shares @ self.spread / (self.n_words - 1.0)

    @property
    def alpha(self) -> Array:
        """The probability Q(z_j = 1) of each word, (n, D)."""
        return np.repeat(self.share[:, None], self.n_words, axis=1)

    def covariances(self, coefficients: Attributions, /) -> Array:
        """The covariances Cov_Q(z, bᵀz), (n, D)."""
        level = coefficients.mean(axis=1, keepdims=True)
        rest = coefficients - level
        return self.along[:, None] * level + self.apart[:, None] * rest

    def solved(self, vectors: Array, penalty: Values, /) -> Array:
        """The solutions (Cov_Q(z) + ρ I)⁻¹ x for vectors x (n, S, D)."""
        level = vectors.mean(axis=2, keepdims=True)
        ends = level / (self.along + penalty)[:, None, None]
        rest = (vectors - level) / (self.apart + penalty)[:, None, None]
        return ends + rest

    def shrinkage(self, penalty: Values, /) -> Array:
        """The part of a coefficient that the ridge ρ retains, (n, D)."""
        one = 1.0 / self.n_words
        left = one * self.along / (self.along + penalty)
        left += (1.0 - one) * self.apart / (self.apart + penalty)
        return np.repeat(left[:, None], self.n_words, axis=1)


# ---- How LIME deletes words, and the weights of samples


_MOST: Final = 1e100
"""The largest bandwidth, and its reciprocal the smallest: squares are finite."""


@final
@suggests_arguments
@dataclass(frozen=True)
class TextLaw:
    """The sampling law of the package ``lime`` on texts: words are deleted at random.

    s is uniform on 1, ..., d, and the deleted words are a uniform set of s of the d
    distinct words of a document. A sample with m = d − s remaining words has the weight

    π = exp(−(1 − √(m / d))² / (2 ν²))

    from its cosine distance (Mardaoui and Garreau 2021, Eq. 3 and 7). The bits are not
    independent, but exchangeable: the weight depends only on m.

    Parameters
    ----------
    bandwidth : float
        ν > 0, or inf for weights of one. The package has ``kernel_width`` = 100 ν, by
        default 25.

    Raises
    ------
    InvalidInput
        If the bandwidth is not a number between 1e-100 and 1e100, or inf.

    Examples
    --------
    >>> round(TextLaw().effective_share(29), 3)
    0.646
    """

    bandwidth: float = field(default=0.25, infinite=True)

    def __post_init__(self) -> None:
        given: object = self.bandwidth
        is_infinite = isinstance(given, float | np.floating) and given == np.inf
        value = np.inf if is_infinite else read_positive(given, "bandwidth")
        if not (is_infinite or 1.0 / _MOST <= value <= _MOST):
            raise InvalidInput(
                f"bandwidth: expected a number between {1.0 / _MOST:g} and {_MOST:g}, "
                f"or inf, got {value}"
            )
        object.__setattr__(self, "bandwidth", value)

    def log_weights(self, n_words: int) -> Values:
        """The log weights log π by number of remaining words m = 0, ..., d, (d + 1,).

        Parameters
        ----------
        n_words : int
            The number of distinct words, d.

        Returns
        -------
        array (d + 1,)
            −inf for m = d, as the document itself is not a sample.
        """
        logs = -_squared_distances(n_words) / (2.0 * self.bandwidth**2)
        logs[-1] = -np.inf
        return logs

    def shares(self, n_words: int) -> Values:
        """The weight of each number m = 0, ..., d of retained words, (d + 1,)."""
        squares = _squared_distances(n_words)
        farther = 0.5 * (squares[:-1] - squares[-2])
        return np.append(np.exp(-farther / self.bandwidth**2), 0.0)

    def bits(self, n_words: int) -> ExchangeableBits:
        """The moments of the presence (0 or 1) of d ≥ 2 words in weighted samples.

        They determine Σ = E[π Z Zᵀ] of Z = (1, z_1, ..., z_d): E π, the share α_1 / α_0
        of a word, and two eigenvalues of the covariance of bits (Mardaoui and Garreau
        2021, Propositions 8 and 9).

        Parameters
        ----------
        n_words : int
            The number of distinct words, d.

        Returns
        -------
        ExchangeableBits
            The moments.

        Raises
        ------
        InvalidInput
            If there are fewer than two words.
        """
        if n_words < 2:
            raise InvalidInput(
                f"n_words: expected at least 2, got {n_words}: one word does not "
                "determine both its coefficient and the intercept"
            )
        return ExchangeableBits((self.log_weights(n_words) - np.log(n_words))[None])

    def effective_share(self, n_words: int) -> float:
        """The effective share of the samples, (E π)² / E π².

        Parameters
        ----------
        n_words : int
            The number of distinct words, d.

        Returns
        -------
        float
            Between 0 and 1.
        """
        shares = softmax(self.log_weights(n_words))
        return float(1.0 / (shares**2).sum() / n_words)

    def draw(
        self, n_words: int, n_samples: int, rng: np.random.Generator
    ) -> tuple[Mask, Array]:
        """Draw samples as LIME does: their bits (S, d) and weights (S,).

        Parameters
        ----------
        n_words, n_samples : int
            The number of distinct words d and of samples S.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        (array (S, d), array (S,))
            Bits, True for remaining words, and weights.
        """
        deleted = rng.integers(1, n_words + 1, n_samples)
        weights = np.exp(self.log_weights(n_words))[n_words - deleted]
        return random_sets(n_words, n_words - deleted, rng), weights


def _squared_distances(n_words: int) -> Values:
    """(1 − √(m / d))² of texts with m = 0, ..., d remaining words, (d + 1,)."""
    return (1.0 - np.sqrt(np.arange(n_words + 1) / n_words)) ** 2


# ---- The exact limits on a text, from the means of f over sets of one size


_NEGLIGIBLE: Final = 1e-290
"""Below this weight of all sizes except the largest the limit is that of ν → 0."""


@final
@dataclass(frozen=True, eq=False)
class WordCoefficients:
    """The coefficients with infinitely many samples, at K bandwidths, for one text."""

    coefficients: Array  # (K, d): β_1, ..., β_d
    intercept: Values  # (K,): β_0
    # (K, d): of estimated coefficients; None if they are exact
    standard_errors: Array | None = None


@final
@dataclass(frozen=True, eq=False)
class WordRegression:
    """The limits of a function of words, with weights by number of remaining words.

    (β_0, mean of β) are intercept and slope of the weighted regression of E_m f on m,
    with weights π of sizes m, and

    β_j = slope + (Γ_j − mean of Γ) / (α_1 − α_2),   Γ_j = E[π z_j f]:

    Σ⁻¹Γ of Mardaoui and Garreau (2021, Eq. 12), without the differences of large
    numbers that cancel in their σ_0, ..., σ_3 and c_d.
    """

    function: SizeMeans  # f of d ≥ 2 words: a set function, or samples of one

    def at(self, bandwidths: Values) -> WordCoefficients:
        """The limits at bandwidths ν (K,)."""
        d = self.function.n_words
        shares = np.array([TextLaw(float(nu)).shares(d) for nu in bandwidths])
        return self.weighed(shares)

    def weighed(self, shares: Array) -> WordCoefficients:
        """The limits for weights (K, d + 1) of sizes m = 0, ..., d."""
        d = self.function.n_words
        gamma = self.function.first_moments(shares)
        means = self.means  # cheap after the first moments
        # u = d − 1 − m and E_m f − E_(d−1) f, so that sums stay small
        u = d - 1.0 - np.arange(d)
        level = means[:d] - means[d - 1]
        w = shares[:, :d]
        total = w.sum(axis=1)
        u_mean = w @ u / total
        level_mean = w @ level / total
        square = (w * (u - u_mean[:, None]) ** 2).sum(axis=1)
        product = (w * (u - u_mean[:, None]) * level).sum(axis=1)
        tiny = square < _NEGLIGIBLE
        fall = quotient(product, square, level[d - 2], ~tiny)
        slope = -fall
        at_full = means[d - 1] + np.where(tiny, 0.0, level_mean - fall * u_mean)
        m = np.arange(d + 1.0)
        apart = (shares @ (m * (d - m))) / (d * (d - 1.0))  # d (α_1 − α_2)
        contrast = gamma - gamma.mean(axis=1, keepdims=True)
        coefficients = slope[:, None] + contrast / apart[:, None]
        return WordCoefficients(coefficients, at_full - slope * (d - 1.0))

    @cached_property
    def means(self) -> Values:
        """The means E_m f for m = 0, ..., d remaining words, (d + 1,)."""
        return self.function.mean_by_size()


# ---- The structure of a text model, used only if it matches the model's answers


_N_COMPARED: Final = 16
"""The number of random sets of words, in addition to all, none and single words."""

_TOLERANCE: Final = 1e-5
"""The allowed difference of structure and model, over the range of f."""


@final
@dataclass(frozen=True, eq=False)
class CheckedDocument:
    """A document with the value of f and, if possible, f as a function of its words."""

    document: TextDocument
    value: float  # f of the document; NaN if it is not finite
    # f as a function of the remaining words, or why it is unknown
    words: SetFunction | Reason
    # why LIME has no coefficients, such as a text without a finite value; or empty
    refusal: str = ""

    def refuse(self) -> None:
        """Raise the refusal as an error, if there is one."""
        if self.refusal:
            raise InvalidInput(self.refusal)


def checked_subsets(
    function: TextFunction, document: TextDocument
) -> SetFunction | Reason:
    """The function of a document's words, if it matches the model's answers."""
    (result,) = check_documents(function, [document])
    result.refuse()
    return result.words


def check_documents(
    function: TextFunction,
    documents: Sequence[TextDocument],
    advance: Callable[[int], object] = lambda _: None,
) -> list[CheckedDocument]:
    """Compare the structure of a model with its answers for documents, in one call.

    A model with a structure evaluates 34 texts of each, another the document itself.
    ``advance`` gets the number of documents after each.
    """
    words: list[SetFunction | Reason] = []
    for document in documents:
        none = Reason("there is no word in it")
        words.append(function.subsets(document) if document.n_words else none)
        advance(1)
    # the document itself comes first
    sets = [
        np.ones((1, document.n_words), bool)
        if isinstance(occurrences, Reason)
        else compared_sets(document.n_words)
        for document, occurrences in zip(documents, words, strict=True)
    ]
    texts = (
        text
        for document, bits in zip(documents, sets, strict=True)
        for text in document.each(bits)
    )
    values = function.texts_value(texts, finite=False)
    answers = np.split(values, np.cumsum([len(bits) for bits in sets])[:-1])
    each = zip(documents, words, sets, answers, strict=True)
    return [_compared(function, *parts) for parts in each]


def _compared(
    function: TextFunction,
    document: TextDocument,
    words: SetFunction | Reason,
    bits: Mask,
    values: Values,
) -> CheckedDocument:
    """The structure of the model at a document, if it matches the answers."""
    value = float(values[0]) if np.isfinite(values[0]) else np.nan
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong) > 0:
        text = document.without(bits[wrong[0]])
        refusal = function.nonfinite_message(values[wrong[0]], text)
        return CheckedDocument(document, value, words, refusal)
    if isinstance(words, Reason):
        return CheckedDocument(document, value, words)
    errors = np.abs(words.value(bits) - values)
    allowed = allowed_difference(values, _TOLERANCE, precision_of(values))
    worst = int(np.argmax(errors - allowed))
    if errors[worst] <= allowed[worst]:
        return CheckedDocument(document, value, words)
    reason = (
        f"the structure {words!r} of the model differs from its answer by "
        f"{errors[worst]:.2g}, where answers range over {np.ptp(values):.2g}, with "
        f"{int(bits[worst].sum())} of {document.n_words} words remaining"
    )
    return CheckedDocument(document, value, Reason(reason))


def enumerated_words(function: TextFunction, document: TextDocument) -> Enumerated:
    """The function of the words of a document, from the values of all 2^d texts."""
    return Enumerated.of(
        lambda bits: function.texts_value(document.each(bits)), document.n_words
    )


def compared_sets(n_words: int) -> Mask:
    """The sets of words at which structure and model are compared, as bits."""
    rng = np.random.default_rng(0)
    alone = ~np.eye(n_words, dtype=bool)[rng.permutation(n_words)[:_N_COMPARED]]
    sizes = rng.integers(0, n_words + 1, _N_COMPARED)
    ends = np.array([[True], [False]]).repeat(n_words, axis=1)
    return np.concatenate([ends, alone, random_sets(n_words, sizes, rng)])

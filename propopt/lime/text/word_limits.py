"""The law of deleted words, limits on texts, and how models of texts are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Mask, Values
from propopt.base.checks import read_positive
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.functions.jumps import allowed_difference, precision_of
from propopt.functions.texts import TextFunction
from propopt.lime.exact_limits import ExchangeableBits
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.structures.subsets.sets import SetFunction, SizeMeans, random_sets
from propopt.tables.documents import TextDocument


# ---- How LIME deletes words: how many, which, and what weight the rest has


_MOST: Final = 1e100
"""Of bandwidths, and of one over them: squares of more are no numbers."""


@final
@suggests_arguments
@dataclass(frozen=True)
class TextLaw:
    """Words that are deleted at random, as in the package ``lime`` on texts.

    s is uniform on 1, ..., d, and the deleted words are a uniform set of s of the d
    distinct words of a document. A sample that keeps m = d − s has the weight

    π = exp(−(1 − √(m / d))² / (2 ν²))

    of its cosine distance (Mardaoui and Garreau 2021, Eq. 3 and 7). The bits are not
    independent, but exchangeable: all that is known of a sample is in m.

    Parameters
    ----------
    bandwidth : float
        ν > 0, or inf for weights of one. The package has ``kernel_width`` = 100 ν,
        and 25 by default.

    Raises
    ------
    InvalidInput
        If the bandwidth is no positive number, or beyond 1e-100 or 1e100.

    Examples
    --------
    >>> round(TextLaw().effective_share(29), 3)
    0.646
    """

    bandwidth: float = field(default=0.25, infinite=True)

    def __post_init__(self) -> None:
        given: object = self.bandwidth
        endless = isinstance(given, float | np.floating) and given == np.inf
        own = np.inf if endless else read_positive(given, "bandwidth")
        if not (endless or 1.0 / _MOST <= own <= _MOST):
            raise InvalidInput(
                f"bandwidth: expected a number between {1.0 / _MOST:g} and {_MOST:g}, "
                f"or inf, got {own}"
            )
        object.__setattr__(self, "bandwidth", own)

    def log_weights(self, n_words: int) -> Values:
        """Log π of sizes m = 0, ..., d words kept, (d + 1,); −inf for m = d, no sample.

        Parameters
        ----------
        n_words : int
            d.
        """
        squares = (1.0 - np.sqrt(np.arange(n_words + 1) / n_words)) ** 2
        logs = -squares / (2.0 * self.bandwidth**2)
        logs[-1] = -np.inf
        return logs

    def shares(self, n_words: int) -> Values:
        """π / d of sizes m = 0, ..., d over the largest π / d of all, (d + 1,)."""
        squares = (1.0 - np.sqrt(np.arange(n_words + 1) / n_words)) ** 2
        farther = 0.5 * (squares[:-1] - squares[-2])
        return np.append(np.exp(-farther / self.bandwidth**2), 0.0)

    def bits(self, n_words: int) -> ExchangeableBits:
        """Moments of the bits of d ≥ 2 words under the weighted law.

        They hold all that Σ = E[π Z Zᵀ] of Z = (1, z_1, ..., z_d) says of samples: E π,
        the share α_1 / α_0 of a word, and two eigenvalues of the covariance of bits
        (Mardaoui and Garreau 2021, Propositions 8 and 9).

        Parameters
        ----------
        n_words : int
            d.

        Raises
        ------
        InvalidInput
            If there is one word: its coefficient and the intercept are then one.
        """
        if n_words < 2:
            raise InvalidInput(
                f"n_words: expected at least 2, got {n_words}: of one word its "
                "coefficient and the intercept cannot be told apart"
            )
        logs = self.log_weights(n_words) - np.log(n_words)
        return ExchangeableBits(logs[None])

    def effective_share(self, n_words: int) -> float:
        """(E π)² / E π², the share of the samples that count.

        Parameters
        ----------
        n_words : int
            d.
        """
        logs = self.log_weights(n_words)
        weights = np.exp(logs - logs.max())
        return float(weights.sum() ** 2 / (weights**2).sum() / n_words)

    def draw(
        self, n_words: int, n_samples: int, rng: np.random.Generator
    ) -> tuple[Mask, Array]:
        """Bits (S, d) of samples, and their weights (S,).

        Parameters
        ----------
        n_words, n_samples : int
            d and S.
        rng : numpy.random.Generator
            Where they come from.
        """
        deleted = rng.integers(1, n_words + 1, n_samples)
        weights = np.exp(self.log_weights(n_words))[n_words - deleted]
        return random_sets(n_words, n_words - deleted, rng), weights


# ---- What LIME on a text tends to, exactly, from the means of f over sets of one size


_NOTHING: Final = 1e-290
"""Of the weight of all sizes but the largest: there the limit ν → 0 is had."""


@final
@dataclass(frozen=True, eq=False)
class WordCoefficients:
    """Coefficients of infinitely many samples, at K bandwidths, for one document."""

    coefficients: Array  # (K, d): β_1, ..., β_d
    intercept: Values  # (K,): β_0
    # (K, d): of coefficients that samples told; None where they are exact
    standard_errors: Array | None = None
    intercept_error: Values | None = None  # shape (K,)


@final
@dataclass(frozen=True, eq=False)
class WordRegression:
    """Limits of a function of words under laws that know the number of words kept.

    (β_0, mean of β) are intercept and slope of the weighted regression of E_m f on m,
    with weights π of sizes m, and

    β_j = slope + (Γ_j − mean of Γ) / (α_1 − α_2),   Γ_j = E[π z_j f]:

    Σ⁻¹Γ of Mardaoui and Garreau (2021, Eq. 12), without the differences of large
    numbers that cancel in their σ_0, ..., σ_3 and c_d.
    """

    # f, of d ≥ 2 words: a set function, or what samples told of one
    function: SizeMeans

    def __post_init__(self) -> None:
        if self.function.n_words < 2:
            raise InvalidInput(
                "a text needs two distinct words: of one word its coefficient and the "
                "intercept cannot be told apart, as it is always deleted"
            )

    def at(self, bandwidths: Values) -> WordCoefficients:
        """The limits at bandwidths ν (K,); bandwidths (K,)."""
        d = self.function.n_words
        shares = np.array([TextLaw(float(nu)).shares(d) for nu in bandwidths])
        return self.weighed(shares)

    def weighed(self, shares: Array) -> WordCoefficients:
        """The limits for weights of sizes (K, d + 1), of m = 0, ..., d words kept."""
        d, gamma = self.function.n_words, self.function.first_moments(shares)
        means = self.means  # known from what the former took
        # u = d − 1 − m and E_m f − E_(d−1) f: sums of what is small are small
        u = d - 1.0 - np.arange(d)
        level = means[:d] - means[d - 1]
        w = shares[:, :d]
        total = w.sum(axis=1)
        u_mean, level_mean = w @ u / total, w @ level / total
        square = (w * (u - u_mean[:, None]) ** 2).sum(axis=1)
        product = (w * (u - u_mean[:, None]) * level).sum(axis=1)
        tiny = square < _NOTHING
        fall = np.divide(product, square, out=np.zeros(len(w)), where=~tiny)
        fall[tiny] = level[d - 2]
        slope = -fall
        at_full = means[d - 1] + np.where(tiny, 0.0, level_mean - fall * u_mean)
        m = np.arange(d + 1.0)
        apart = (shares @ (m * (d - m))) / (d * (d - 1.0))  # d (α_1 − α_2)
        contrast = gamma - gamma.mean(axis=1, keepdims=True)
        coefficients = slope[:, None] + contrast / apart[:, None]
        return WordCoefficients(coefficients, at_full - slope * (d - 1.0))

    @cached_property
    def means(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        return self.function.mean_by_size()


# ---- What a model of texts is read as, believed once it is what the model answers


_N_COMPARED: Final = 16
"""Random sets of words, beside all words, none, and some words alone left out."""

_TOLERANCE: Final = 1e-5
"""Of the range of f over sets of words, by which what was read may differ."""


@final
@dataclass(frozen=True, eq=False)
class CheckedDocument:
    """What is known of a function at a document before more of it is asked."""

    document: TextDocument
    value: float  # f of the document; NaN where it is not finite
    # what f is there, as a function of which words are kept, or why that is not known
    words: SetFunction | Reason
    # the text for which f has no finite value; empty if there is none
    refusal: str = ""

    def refuse(self) -> None:
        """Raise what is wrong, if anything is."""
        if self.refusal:
            raise InvalidInput(self.refusal)


def checked_subsets(
    function: TextFunction, document: TextDocument
) -> SetFunction | Reason:
    """The function of a document's words, if it is what the model answers there."""
    (result,) = check_documents(function, [document])
    result.refuse()
    return result.words


def check_documents(
    function: TextFunction,
    documents: Sequence[TextDocument],
    told: Callable[[int], object] = lambda _: None,
) -> list[CheckedDocument]:
    """What is known of documents, for which the model is called together.

    A model that is read is given 34 texts of each, any other the document itself.
    """
    words: list[SetFunction | Reason] = []
    for document in documents:
        none = Reason("there is no word in it")
        words.append(function.subsets(document) if document.n_words else none)
        told(1)
    # the document itself comes first
    asked = [
        np.ones((1, document.n_words), bool)
        if isinstance(occurrences, Reason)
        else compared_sets(document.n_words)
        for document, occurrences in zip(documents, words, strict=True)
    ]
    texts = (
        text
        for document, bits in zip(documents, asked, strict=True)
        for text in document.each(bits)
    )
    values = function.texts_value(texts, finite=False)
    answers = np.split(values, np.cumsum([len(bits) for bits in asked])[:-1])
    each = zip(documents, words, asked, answers, strict=True)
    return [_believed(function, *own) for own in each]


def _believed(
    function: TextFunction,
    document: TextDocument,
    words: SetFunction | Reason,
    bits: Mask,
    values: Values,
) -> CheckedDocument:
    """What was read, if it is what the model answered."""
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
        f"what the model was read as, {words!r}, differs from its answer by "
        f"{errors[worst]:.2g}, where answers range over {np.ptp(values):.2g}, with "
        f"{int(bits[worst].sum())} of {document.n_words} words present"
    )
    return CheckedDocument(document, value, Reason(reason))


def enumerated_words(function: TextFunction, document: TextDocument) -> Enumerated:
    """The function of the words of a document, by asking for all its 2^d texts."""
    return Enumerated.of(
        lambda bits: function.texts_value(document.each(bits)), document.n_words
    )


def compared_sets(n_words: int) -> Mask:
    """Sets of words at which what was read is compared with the model, as bits."""
    rng = np.random.default_rng(0)
    alone = ~np.eye(n_words, dtype=bool)[rng.permutation(n_words)[:_N_COMPARED]]
    sizes = rng.integers(0, n_words + 1, _N_COMPARED)
    ends = np.array([[True], [False]]).repeat(n_words, axis=1)
    return np.concatenate([ends, alone, random_sets(n_words, sizes, rng)])

"""Coefficients of functions of words that can only be called, with standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from scipy.special import ndtr, stdtrit

from propopt._typing import Array, Positions, Truths, Values
from propopt.lime.text.finite.draws import WordDraws
from propopt.lime.text.limits import ExactWordLimits, WordLimits
from propopt.lime.text.sampled.controls import ControlTerms, controls
from propopt.lime.text.sampled.plan import SET_BLOCKS, SizePlan
from propopt.structures.subsets import WordPairs
from propopt.structures.subsets.sets import sets_of_size


@final
@dataclass(frozen=True, eq=False)
class SampledWords:
    """Samples of a function of words: what they tell at any bandwidth.

    Parameters
    ----------
    plan : SizePlan
        Which sets were asked for.
    full : _Weighted
        f at all sets of some sizes.
    controls : list of WordPairs
        What the other blocks told, for each block.
    left : list of _Weighted
        What they left over, at the samples of each block.
    draws : WordDraws
        All sets that were asked for, and f there.
    """

    plan: SizePlan
    full: _Weighted
    controls: list[WordPairs]
    left: list[_Weighted]
    draws: WordDraws

    @property
    def n_words(self) -> int:
        """The number of bits, d."""
        return self.plan.n_words

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, without bias, (d + 1,)."""
        return np.mean([block.mean_by_size() for block in self.blocks], axis=0)

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes, without bias: (K, d)."""
        return np.mean([block.kept(weights) for block in self.blocks], axis=0)

    def at(self, bandwidths: Values) -> WordLimits:
        """Coefficients at bandwidths ν (K,), with standard errors.

        Each block gives an estimate without bias; errors are the scatter of the blocks,
        1.15 times and more, as there are 20 of them.
        Bandwidths far below that of the law have larger ones.

        Parameters
        ----------
        bandwidths : array (K,)
            ν, each positive or inf.
        """
        found = [ExactWordLimits(block).at(bandwidths) for block in self.blocks]
        coefficients = np.array([limits.coefficients for limits in found])
        intercept = np.array([limits.intercept for limits in found])
        correction = _correction(coefficients)
        return WordLimits(
            coefficients.mean(axis=0),
            intercept.mean(axis=0),
            correction[:, None] * _error(coefficients),
            correction * _error(intercept),
        )

    @cached_property
    def blocks(self) -> tuple[BlockMeans, ...]:
        """The means that each block tells of."""
        pairs = zip(self.controls, self.left, strict=True)
        return tuple(BlockMeans(self.plan.full, self.full, *pair) for pair in pairs)


@final
@dataclass(frozen=True, eq=False)
class BlockMeans:
    """E_m f and E_m[z_j f] without bias: what is known, and what a block tells.

    Parameters
    ----------
    known : array of bool (d,)
        Sizes of which all sets were asked for.
    full : _Weighted
        f there.
    control : WordPairs
        About f, at the other sizes.
    left : _Weighted
        f less the control, at samples of these sizes.
    """

    known: Truths
    full: _Weighted
    control: WordPairs
    left: _Weighted

    @property
    def n_words(self) -> int:
        """The number of bits, d."""
        return self.control.n_words

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        about = self.control.mean_by_size() * self._unknown
        return np.asarray(about + self.full.mean_by_size() + self.left.mean_by_size())

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        about = self.control.kept(weights * self._unknown)
        return np.asarray(about + self.full.kept(weights) + self.left.kept(weights))

    @cached_property
    def _unknown(self) -> Values:
        return np.append(~self.known, True).astype(float)


@final
@dataclass(frozen=True, eq=False)
class _Weighted:
    """Sets, f there, and factors with which sums over them are E_m f in the mean."""

    bits: Truths
    sizes: Positions
    products: Values
    """Factor times f, (n,)."""

    def mean_by_size(self) -> Values:
        d = self.bits.shape[1]
        return np.asarray(np.bincount(self.sizes, self.products, d + 1), float)

    def kept(self, weights: Array) -> Array:
        return np.asarray((weights[:, self.sizes] * self.products) @ self.bits)


def estimate_words(
    evaluate: Callable[[Truths], Values],
    plan: SizePlan,
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda _: None,
) -> SampledWords:
    """Samples of a function of words, by a plan.

    Sets are drawn size by size; each of 20 blocks gives an estimate that is unbiased:
    what a fit to the other blocks says, on the number of words, on each word and, in
    texts with few words, on pairs of them, and what it leaves over. Of functions with
    few interactions little is left over, so that a sample tells more than one of LIME.

    Parameters
    ----------
    evaluate : callable
        From bits (n, d) to f (n,).
    plan : SizePlan
        Which sets are asked for.
    rng : numpy.random.Generator
        Where samples come from.
    advance : callable, optional
        Told how many sets were evaluated, each time.

    Examples
    --------
    >>> from propopt.lime.text.law import TextLaw
    >>> plan = SizePlan.of(20, TextLaw(), 2000)
    >>> found = estimate_words(
    ...     lambda bits: 1.0 * (bits[:, 0] & bits[:, 1]), plan, np.random.default_rng(0)
    ... ).at(np.array([0.25]))
    >>> found.coefficients[0, :3].round(4)
    array([ 0.6463,  0.6463, -0.0013])
    >>> bool(found.standard_errors[0, 0] < 1e-6)
    True
    """

    def asked(bits: Truths) -> Values:
        values = np.asarray(evaluate(bits), float)
        advance(len(bits))
        return values

    whole = np.concatenate(
        [sets_of_size(plan.n_words, int(m)) for m in np.flatnonzero(plan.full)]
    )
    bits, sizes = zip(*(plan.draw(rng) for _ in range(SET_BLOCKS)), strict=True)
    every = np.concatenate([whole, *bits])
    answers = asked(every)  # together: a call costs more than its texts
    known, values = answers[: len(whole)], np.split(answers[len(whole) :], SET_BLOCKS)
    terms = ControlTerms.for_samples(plan.n_words, (SET_BLOCKS - 1) * plan.block_size)
    fits = controls(terms, list(bits), list(sizes), values, float(known[0]))
    factors = np.divide(
        1.0,
        plan.block_size * plan.chances,
        out=np.zeros(plan.n_words),
        where=plan.chances > 0.0,
    )
    left = [
        _Weighted(z, m, factors[m] * (f - fit.value(z)))
        for z, m, f, fit in zip(bits, sizes, values, fits, strict=True)
    ]
    draws = WordDraws(every, answers)
    return SampledWords(plan, _all_of(whole, known), fits, left, draws)


def _all_of(bits: Truths, values: Values) -> _Weighted:
    """F at all sets of some sizes."""
    sizes = bits.sum(axis=1)
    return _Weighted(bits, sizes, values / np.bincount(sizes)[sizes])


_DEVIATIONS: Final = 3.0
"""At which errors are as those of normal numbers; nearer ones hold a little more."""


def _correction(blocks: Array) -> Array:
    """Of scatters, so that three errors hold what three normal sd would: (K,).

    The scatter s of B blocks (B, K, d) is not their deviation: (mean − truth) √B / s
    has tails as Student's t. Its degrees of freedom are 2 σ⁴ / Var s², where
    Var s² = σ⁴ (2 / (B − 1) + γ / B) with the excess kurtosis γ of blocks: 19 of normal
    ones, 10 where blocks have five samples. γ is that of all words together.
    """
    B = len(blocks)
    apart = blocks - blocks.mean(axis=0)
    square, fourth = (apart**2).mean(axis=0), (apart**4).mean(axis=0)
    g = np.divide(fourth, square**2, out=np.full(square.shape, 3.0), where=square > 0.0)
    g = (B - 1) / ((B - 2) * (B - 3)) * ((B + 1) * (g - 3.0) + 6.0)
    excess = np.maximum(g.mean(axis=-1), 0.0)
    freedom = 2.0 / (2.0 / (B - 1) + excess / B)
    return np.asarray(stdtrit(freedom, ndtr(_DEVIATIONS)) / _DEVIATIONS)


def _error(blocks: Array) -> Array:
    """The scatter of the mean of independent blocks."""
    return np.asarray(blocks.std(axis=0, ddof=1) / np.sqrt(len(blocks)))

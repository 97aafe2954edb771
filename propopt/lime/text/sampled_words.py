"""Limits on texts estimated from samples, with standard errors.

Least squares on the other blocks gives a control function with exact means,
f(z) ≈ c(z) = g(m) + Σ_j γ_j z_j + Σ_{j<k} B_jk z_j z_k. So only the limits of f − c are
estimated, with less variance; and as c does not depend on the samples of the block
that estimates f − c, the sum of both is unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

import numpy as np
from scipy.special import comb, ndtr, stdtrit

from propopt.base.arrays import Array, Indices, Mask, Values, quotient
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.functions.texts import TextFunction
from propopt.laws.regressions import LeastSquares
from propopt.laws.sampling import DrawCost, Sampler, stream_of
from propopt.lime.finite_samples import WordDraws, stratified_sizes
from propopt.lime.sampled_limits import DRAWS_PER_TERM, LIME_BLOCKS
from propopt.lime.text.word_limits import TextLaw, WordCoefficients, WordRegression
from propopt.losses.faithfulness import error_of_blocks, relative_size
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import SetFunction, random_sets, sets_of_size
from propopt.structures.subsets.sums import AddedSets
from propopt.tables.documents import TextDocument


# ---- Control functions for limits on texts, fitted to samples


_MOST_TERMS: Final = 800
"""The number of terms for which least squares take a part of a second."""

_RIDGE: Final = 1e-9
"""The ridge over the largest variance, for collinear terms."""

_POWERS: Final = 3
"""The number of powers of the size: a constant, and those from the second on."""


def controls(
    bits: Sequence[Mask],  # shape (s, d)
    sizes: Sequence[Indices],  # shape (s,)
    values: Sequence[Values],  # shape (s,)
    base: float,
) -> list[AddedSets]:
    """For each block, the least squares fit to the samples of all other blocks.

    Terms are 1, u² and u³ of u = 2 m / d − 1, or u without words; the words; and pairs
    of them: as many as the number of samples allows.
    """
    d = bits[0].shape[1]
    room = (len(bits) - 1) * len(bits[0]) // DRAWS_PER_TERM
    with_words = _POWERS + d <= room
    with_pairs = _POWERS + d * (d + 1) // 2 <= min(room, _MOST_TERMS)
    u = 2.0 * np.arange(d + 1) / d - 1.0
    powers = np.stack([np.ones_like(u), u**3 if with_words else u, u**2], axis=1)
    one, other = np.triu_indices(d, 1)
    words = np.stack([np.arange(d), np.full(d, -1)], axis=1)
    paths = np.concatenate([words, np.stack([one, other], axis=1)])
    paths = np.where(paths >= 0, 2 * paths + 1, -1)  # factors of remaining words

    def equations(block: tuple[Mask, Indices, Values]) -> LeastSquares:
        z, m, f = block
        parts = [powers[m]]
        if with_words:
            parts.append(np.asarray(z, float))
        if with_pairs:
            parts.append((z[:, one] & z[:, other]).astype(float))
        return LeastSquares.of(np.concatenate(parts, axis=1), f - base)

    blocks = list(zip(bits, sizes, values, strict=True))
    every = equations(blocks[0])
    for block in blocks[1:]:
        every += equations(block)
    every = every.ridged(_RIDGE * float(every.gram.diagonal().max()))
    fits = []
    for block in blocks:  # computed twice: 20 with a term for each word are large
        weights = (every - equations(block)).solution
        terms = Conjunctions.of_factors(
            0.0, weights[_POWERS:], paths[: len(weights) - _POWERS], d
        )
        fits.append(AddedSets([(1.0, terms)], base + powers @ weights[:_POWERS]))
    return fits


# ---- The evaluated sets of words: all sets of some sizes, samples of the others


FEWEST_SETS: Final = 5 * LIME_BLOCKS
"""The smallest number of samples."""

_ELSEWHERE: Final = 0.1
"""The share of samples with uniform sizes, for other bandwidths."""

_ALONE: Final = 0.1
"""The largest share of evaluations without one word each."""


@final
@dataclass(frozen=True, eq=False)
class SizePlan:
    """The sizes m with all sets evaluated, and the sampling of the others.

    A size is sampled in proportion to π √(m (d − m)), and evaluated in full if it has
    no more sets than that; m = 0 always, m = d − 1 for at most a tenth of the samples.
    """

    n_words: int  # d
    full: Mask  # (d,): whether all sets of the sizes 0, ..., d − 1 are evaluated
    chances: Values  # (d,): the probability of a size for a sample; 0 for full ones
    block_size: int  # samples in each of 20 blocks

    @classmethod
    def of(cls, n_words: int, law: TextLaw, n_samples: int) -> SizePlan:
        """The plan with about ``n_samples`` evaluations."""
        if n_samples < FEWEST_SETS:
            raise InvalidInput(
                f"n_samples: {n_samples} samples are too few for standard errors; "
                f"expected at least {FEWEST_SETS}"
            )
        m = np.arange(n_words)
        shares = law.shares(n_words)[:n_words] * np.sqrt((m + 0.5) * (n_words - m))
        likely = (1.0 - _ELSEWHERE) * shares / shares.sum() + _ELSEWHERE / n_words
        n_sets = comb(n_words, np.arange(n_words))
        full = n_sets <= np.maximum(1.0, n_samples * likely)
        full[-1] |= n_words <= _ALONE * n_samples
        if full.all():  # for a text with few sets of words
            full[np.argmax(n_sets)] = False
        chances = np.where(full, 0.0, likely)
        left = max(n_samples - int(n_sets[full].sum()), FEWEST_SETS)
        return cls(n_words, full, chances / chances.sum(), -(-left // LIME_BLOCKS))

    @property
    def cost(self) -> DrawCost:
        """The number of texts that the model evaluates, as a cost of draws."""
        n_full = int(comb(self.n_words, np.flatnonzero(self.full)).sum())
        return DrawCost(1, once=n_full, fewest=FEWEST_SETS, step=LIME_BLOCKS)

    @property
    def evaluations(self) -> int:
        """The number of texts that the model evaluates."""
        return self.cost.of(LIME_BLOCKS * self.block_size)

    def within(self, max_evaluations: int, law: TextLaw) -> SizePlan:
        """This plan, or one with fewer samples, within a number of evaluations."""
        plan = self
        n_samples = max_evaluations
        while plan.evaluations > max_evaluations and n_samples >= FEWEST_SETS:
            plan = SizePlan.of(self.n_words, law, n_samples)
            n_samples -= max(plan.evaluations - max_evaluations, 1)
        if plan.evaluations > max_evaluations:
            raise InvalidInput(
                f"max_evaluations: {max_evaluations:,} texts for each document are "
                f"fewer than {FEWEST_SETS} samples of {self.n_words} words need; allow "
                "more, or explain fewer documents"
            )
        return plan

    def draw(self, rng: np.random.Generator) -> tuple[Mask, Indices]:
        """One block with stratified sizes: bits (s, d), and sizes (s,)."""
        sizes = stratified_sizes(self.chances, self.block_size, rng)
        return random_sets(self.n_words, sizes, rng), sizes


# ---- Coefficients of black-box functions of words, with standard errors


ValuedSets: TypeAlias = tuple[Mask, Indices, Values]
"""Sets (n, d), their sizes (n,), and f there (n,), or f times factors of E_m f."""


@final
@dataclass(frozen=True, eq=False)
class SampledWords(Sampler):
    """The samples of a function of words, which estimate limits at any bandwidth."""

    evaluate: Callable[[Mask], Values]  # f of sets
    seed: int  # of the samples; each extension has a new stream
    bandwidth: float  # of the error
    plan: SizePlan  # the evaluated sets
    full: ValuedSets  # f at all sets of some sizes, times factors
    controls: list[AddedSets]  # the fit to the other blocks, for each block
    residuals: list[ValuedSets]  # the residuals of the fit at the samples of each block
    complete: ValuedSets  # f at all sets of some sizes
    samples: tuple[ValuedSets, ...]  # the samples of each block
    n_batches: int = 1

    @property
    def n_words(self) -> int:
        """The number of distinct words, d."""
        return self.plan.n_words

    @property
    def n_draws(self) -> int:  # type: ignore[override]
        """The number of samples of all blocks."""
        return LIME_BLOCKS * self.plan.block_size

    @property
    def cost(self) -> DrawCost:
        return self.plan.cost

    @property
    def error(self) -> float:
        limits = self.at(np.array([self.bandwidth]))
        assert limits.standard_errors is not None, "they are of samples"
        return relative_size(limits.standard_errors, limits.coefficients)

    @property
    def draws(self) -> WordDraws:
        """All evaluated sets, and the values of f."""
        bits, _, values = zip(self.complete, *self.samples, strict=True)
        return np.concatenate(bits), np.concatenate(values)

    def extended(self, n_draws: int) -> SampledWords:
        plan = replace(self.plan, block_size=n_draws // LIME_BLOCKS)
        more = replace(plan, block_size=plan.block_size - self.plan.block_size)
        rng = stream_of(self.seed, self.n_batches)
        sets = [more.draw(rng) for _ in range(LIME_BLOCKS)]
        new = _valued_blocks(sets, self.evaluate(np.concatenate([z for z, _ in sets])))
        pairs = zip(self.samples, new, strict=True)
        samples = tuple(
            (np.concatenate(z), np.concatenate(m), np.concatenate(f))
            for z, m, f in (zip(old, added, strict=True) for old, added in pairs)
        )
        return replace(self.of_samples(plan, samples), n_batches=self.n_batches + 1)

    def of_samples(
        self, plan: SizePlan, samples: tuple[ValuedSets, ...]
    ) -> SampledWords:
        """The estimate from other samples, each block with the fit to the others."""
        base = float(self.complete[2][0])
        bits, sizes, values = (list(x) for x in zip(*samples, strict=True))
        fits = controls(bits, sizes, values, base)
        factors = quotient(1.0, plan.block_size * plan.chances)
        residuals = [
            (z, m, factors[m] * (f - fit.value(z)))
            for (z, m, f), fit in zip(samples, fits, strict=True)
        ]
        return replace(
            self, plan=plan, samples=samples, controls=fits, residuals=residuals
        )

    def mean_by_size(self) -> Values:
        """Unbiased means E_m f for m = 0, ..., d remaining words, (d + 1,)."""
        sampled = self._sampled
        full = _mean_by_size(self.full)
        pairs = zip(self.controls, self.residuals, strict=True)
        return np.mean(
            [
                fit.mean_by_size() * sampled + full + _mean_by_size(residual)
                for fit, residual in pairs
            ],
            axis=0,
        )

    def first_moments(self, weights: Array, /) -> Array:
        """Unbiased sums Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes: (K, d)."""
        sampled = weights * self._sampled
        full = _first_moments(self.full, weights)
        pairs = zip(self.controls, self.residuals, strict=True)
        return np.mean(
            [
                fit.first_moments(sampled) + full + _first_moments(residual, weights)
                for fit, residual in pairs
            ],
            axis=0,
        )

    @property
    def _sampled(self) -> Values:
        """1 for sampled sizes, 0 for sizes with all sets evaluated, (d + 1,)."""
        return np.append(~self.plan.full, True).astype(float)

    def at(self, bandwidths: Values) -> WordCoefficients:
        """The coefficients at bandwidths ν (K,), with standard errors.

        Errors come from the scatter of 20 unbiased blocks, times at least 1.15.
        """
        result = [WordRegression(block).at(bandwidths) for block in self.blocks]
        coefficients = np.array([limits.coefficients for limits in result])
        intercept = np.array([limits.intercept for limits in result])
        return WordCoefficients(
            coefficients.mean(axis=0),
            intercept.mean(axis=0),
            _correction(coefficients)[:, None] * error_of_blocks(coefficients),
        )

    @property
    def blocks(self) -> list[SampledWords]:
        """The estimate of each single block."""
        pairs = zip(self.controls, self.residuals, strict=True)
        return [
            replace(self, controls=[fit], residuals=[residual])
            for fit, residual in pairs
        ]


WordMeans: TypeAlias = SetFunction | SampledWords
"""The means of f by number of words, which give coefficients at any bandwidth."""


def coefficients_of(means: WordMeans, bandwidths: Values) -> WordCoefficients:
    """The coefficients of a document at bandwidths ν (K,)."""
    limits = means if isinstance(means, SampledWords) else WordRegression(means)
    return limits.at(bandwidths)


def _mean_by_size(sets: ValuedSets) -> Values:
    """The sums of values by number of remaining words, (d + 1,)."""
    bits, sizes, products = sets
    return np.asarray(np.bincount(sizes, products, bits.shape[1] + 1), float)


def _first_moments(sets: ValuedSets, weights: Array) -> Array:
    """The sums Σ_m w_m E_m[z_j f], (K, d)."""
    bits, sizes, products = sets
    return (weights[:, sizes] * products) @ bits


def estimate_words(
    evaluate: Callable[[Mask], Values],
    plan: SizePlan,
    seed: int = 0,
    bandwidth: float = TextLaw().bandwidth,
) -> SampledWords:
    """Sample a function of words by a plan.

    Sets are stratified by size. Each of 20 blocks is unbiased: a fit to the other
    blocks on numbers of words, words and pairs, plus its residual on this block.
    """
    complete_sets = np.concatenate(
        [sets_of_size(plan.n_words, int(m)) for m in np.flatnonzero(plan.full)]
    )
    rng = stream_of(seed, 0)
    sets = [plan.draw(rng) for _ in range(LIME_BLOCKS)]
    every = np.concatenate([complete_sets, *(z for z, _ in sets)])
    # one call, as each call has a cost
    answers = np.asarray(evaluate(every), float)
    complete_values = answers[: len(complete_sets)]
    values = answers[len(complete_sets) :]
    count = complete_sets.sum(axis=1)
    full = complete_sets, count, complete_values / np.bincount(count)[count]
    complete = complete_sets, count, complete_values
    empty = SampledWords(evaluate, seed, bandwidth, plan, full, [], [], complete, ())
    return empty.of_samples(plan, _valued_blocks(sets, values))


def _valued_blocks(
    sets: Sequence[tuple[Mask, Indices]], values: Values
) -> tuple[ValuedSets, ...]:
    """The samples of each block with their values, from the values of all."""
    parts = np.split(np.asarray(values, float), len(sets))
    return tuple((z, m, f) for (z, m), f in zip(sets, parts, strict=True))


_DEVIATIONS: Final = 3.0
"""Intervals of three errors have the normal coverage; narrower ones a little more."""


def _correction(blocks: Array) -> Array:
    """The factor for which three errors cover as much as three normal sd, (K,).

    (mean − truth) √B / s of B blocks (B, K, d) has tails as Student's t, of
    2 σ⁴ / Var s² degrees, Var s² = σ⁴ (2 / (B − 1) + γ / B) with the excess kurtosis γ
    of all words together: 19 for normal blocks, 10 for blocks of five samples.
    """
    B = len(blocks)
    apart = blocks - blocks.mean(axis=0)
    square = (apart**2).mean(axis=0)
    fourth = (apart**4).mean(axis=0)
    g = quotient(fourth, square**2, 3.0)
    g = (B - 1) / ((B - 2) * (B - 3)) * ((B + 1) * (g - 3.0) + 6.0)
    excess = np.maximum(g.mean(axis=-1), 0.0)
    freedom = 2.0 / (2.0 / (B - 1) + excess / B)
    return stdtrit(freedom, ndtr(_DEVIATIONS)) / _DEVIATIONS


# ---- The model, the law and the documents that a result keeps for more computations


@final
@dataclass(frozen=True, eq=False)
class TextSubject:
    """A model of texts, a law and documents; not saved with their explanation."""

    function: TextFunction  # f
    law: TextLaw  # of the samples
    documents: tuple[TextDocument, ...]  # (N,): the texts
    draws: DrawPlan  # texts for each document with estimated limits
    # (N,): the means of f by number of words, which give limits at any bandwidth; None
    # for documents without coefficients
    means: tuple[WordMeans | None, ...] = ()

    def of_rows(self, rows: Indices) -> TextSubject:
        """The same model and law, with some of the documents."""
        return replace(
            self,
            documents=tuple(self.documents[n] for n in rows),
            means=tuple(self.means[n] for n in rows),
        )

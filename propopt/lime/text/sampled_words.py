"""Limits on texts that are sampled, with their errors.

Other blocks tell of a function as one whose means are known, by least squares:
f(z) ≈ c(z) = g(m) + Σ_j γ_j z_j + Σ_{j<k} B_jk z_j z_k. So only what LIME tends to for
f − c is estimated, which scatters less; and as c does not depend on the block whose
samples tell f − c, the sum of both has no bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

import numpy as np
from scipy.special import comb, ndtr, stdtrit

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.functions.texts import TextFunction
from propopt.laws.regressions import LeastSquares
from propopt.laws.sampling import DrawCost, Sampler, stream_of
from propopt.lime.finite_samples import WordDraws
from propopt.lime.sampled_limits import DRAWS_PER_TERM, LIME_BLOCKS
from propopt.lime.text.word_limits import TextLaw, WordCoefficients, WordRegression
from propopt.losses.faithfulness import error_of_blocks, relative_size
from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.sets import SetFunction, random_sets, sets_of_size
from propopt.structures.subsets.sums import AddedSets
from propopt.tables.documents import TextDocument


# ---- Limits of LIME on texts for functions that can only be called, from samples


_MOST_TERMS: Final = 800
"""Of which least squares take a part of a second."""

_RIDGE: Final = 1e-9
"""Of the largest scatter: what makes terms solvable that move together."""

_POWERS: Final = 3
"""Of the size: a constant, and those from the second on."""


def controls(
    bits: Sequence[Mask],  # shape (s, d)
    sizes: Sequence[Indices],  # shape (s,)
    values: Sequence[Values],  # shape (s,)
    base: float,
) -> list[AddedSets]:
    """For each block the least squares fit to the samples of all others.

    Terms are 1, u² and u³ of u = 2 m / d − 1, or u where no words say it; the words;
    and pairs of them: as many as the samples can tell.
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
    paths = np.where(paths >= 0, 2 * paths + 1, -1)  # factors of words that are kept

    def equations(block: tuple[Mask, Indices, Values]) -> LeastSquares:
        z, m, f = block
        parts = [powers[m]]
        if with_words:
            parts.append(np.asarray(z, float))
        if with_pairs:
            parts.append((z[:, one] & z[:, other]).astype(float))
        T = np.concatenate(parts, axis=1)
        return LeastSquares.of(T, f - base)

    blocks = list(zip(bits, sizes, values, strict=True))
    every = equations(blocks[0])
    for block in blocks[1:]:
        every += equations(block)
    every = every.ridged(_RIDGE * float(every.gram.diagonal().max()))
    fits = []
    for block in blocks:  # made twice: 20 of them with a term for each word are large
        weights = (every - equations(block)).solution
        terms = Conjunctions.of_factors(
            0.0, weights[_POWERS:], paths[: len(weights) - _POWERS], d
        )
        levels = base + powers @ weights[:_POWERS]
        fits.append(AddedSets([(1.0, terms)], levels))
    return fits


# ---- Which sets of words are asked for: all of some sizes, samples of the others


FEWEST_SETS: Final = 5 * LIME_BLOCKS
"""Samples."""

_ELSEWHERE: Final = 0.1
"""Of the samples, evenly over all sizes: they tell of other bandwidths."""

_ALONE: Final = 0.1
"""Of the samples, for words left out one by one."""


@final
@dataclass(frozen=True, eq=False)
class SizePlan:
    """Sizes m of which all sets are asked for, and how the rest is sampled.

    A size is drawn as often as π √(m (d − m)) says, and asked for in full where it has
    no more sets than that; m = 0 always, m = d − 1 for a tenth of the samples at most.
    """

    n_words: int  # d
    full: Mask  # (d,): which of the sizes 0, ..., d − 1 are asked for in full
    chances: Values  # (d,): of each size for a sample; 0 where it is full
    block_size: int  # samples in each of 20 blocks

    @classmethod
    def of(cls, n_words: int, law: TextLaw, n_samples: int) -> SizePlan:
        """The plan for about so many evaluations."""
        if n_samples < FEWEST_SETS:
            raise InvalidInput(
                f"n_samples: {n_samples} samples are too few for standard errors; give "
                f"at least {FEWEST_SETS}"
            )
        m = np.arange(n_words)
        shares = law.shares(n_words)[:n_words] * np.sqrt((m + 0.5) * (n_words - m))
        likely = (1.0 - _ELSEWHERE) * shares / shares.sum() + _ELSEWHERE / n_words
        n_sets = comb(n_words, np.arange(n_words))
        full = n_sets <= np.maximum(1.0, n_samples * likely)
        full[-1] |= n_words <= _ALONE * n_samples
        if full.all():  # of a text of which all sets could be asked for
            full[np.argmax(n_sets)] = False
        chances = np.where(full, 0.0, likely)
        left = max(n_samples - int(n_sets[full].sum()), FEWEST_SETS)
        return cls(n_words, full, chances / chances.sum(), -(-left // LIME_BLOCKS))

    @property
    def cost(self) -> DrawCost:
        """Texts that the model is given."""
        n_full = int(comb(self.n_words, np.flatnonzero(self.full)).sum())
        return DrawCost(1, once=n_full, fewest=FEWEST_SETS, step=LIME_BLOCKS)

    @property
    def evaluations(self) -> int:
        """Of all of them."""
        return self.cost.of(LIME_BLOCKS * self.block_size)

    def within(self, max_evaluations: int, law: TextLaw) -> SizePlan:
        """This one, or one of fewer samples; refused if none takes so few texts."""
        plan, n_samples = self, max_evaluations
        while plan.evaluations > max_evaluations and n_samples >= FEWEST_SETS:
            plan = SizePlan.of(self.n_words, law, n_samples)
            n_samples -= max(plan.evaluations - max_evaluations, 1)
        if plan.evaluations > max_evaluations:
            raise InvalidInput(
                f"max_evaluations: {FEWEST_SETS} samples of {self.n_words} words take "
                f"more than the {max_evaluations:,} texts that are allowed for each "
                "document; give more, or explain fewer documents"
            )
        return plan

    def draw(self, rng: np.random.Generator) -> tuple[Mask, Indices]:
        """One block, evenly over the chances of sizes: bits (s, d), and sizes (s,)."""
        even = (np.arange(self.block_size) + rng.random()) / self.block_size
        sizes = np.searchsorted(self.chances.cumsum(), even, side="right")
        # rounding of the sum may leave the last number beyond it
        sizes = np.minimum(sizes, np.flatnonzero(self.chances)[-1])
        return random_sets(self.n_words, sizes, rng), sizes


# ---- Coefficients of functions of words that can only be called, with standard errors


Answered: TypeAlias = tuple[Mask, Indices, Values]
"""Sets (n, d), their sizes (n,), and f there (n,), or f times factors of E_m f."""


@final
@dataclass(frozen=True, eq=False)
class SampledWords(Sampler):
    """Samples of a function of words: what they tell at any bandwidth."""

    evaluate: Callable[[Mask], Values]  # f of sets
    seed: int  # of the samples; a stream for each time that they grow
    bandwidth: float  # at which their error is looked at
    plan: SizePlan  # which sets were asked for
    full: Answered  # f at all sets of some sizes, times factors
    controls: list[AddedSets]  # what the other blocks told, for each block
    left: list[Answered]  # what they left over, at the samples of each block
    known: Answered  # all sets of some sizes
    asked: tuple[Answered, ...]  # the samples of each block
    n_batches: int = 1

    @property
    def n_words(self) -> int:
        """The number of bits, d."""
        return self.plan.n_words

    @property
    def n_draws(self) -> int:  # type: ignore[override]
        """Samples, all blocks together."""
        return LIME_BLOCKS * self.plan.block_size

    @property
    def cost(self) -> DrawCost:
        return self.plan.cost

    @property
    def error(self) -> float:
        own = self.at(np.array([self.bandwidth]))
        assert own.standard_errors is not None, "they are of samples"
        return relative_size(own.standard_errors, own.coefficients)

    @property
    def draws(self) -> WordDraws:
        """All sets that were asked for, and f there."""
        bits, _, values = zip(self.known, *self.asked, strict=True)
        return np.concatenate(bits), np.concatenate(values)

    def extended(self, n_draws: int) -> SampledWords:
        plan = replace(self.plan, block_size=n_draws // LIME_BLOCKS)
        more = replace(plan, block_size=plan.block_size - self.plan.block_size)
        rng = stream_of(self.seed, self.n_batches)
        sets = [more.draw(rng) for _ in range(LIME_BLOCKS)]
        new = _answered(sets, self.evaluate(np.concatenate([z for z, _ in sets])))
        both = zip(self.asked, new, strict=True)
        asked = tuple(
            (np.concatenate(z), np.concatenate(m), np.concatenate(f))
            for z, m, f in (zip(old, own, strict=True) for old, own in both)
        )
        return replace(self.of_samples(plan, asked), n_batches=self.n_batches + 1)

    def of_samples(self, plan: SizePlan, asked: tuple[Answered, ...]) -> SampledWords:
        """The same of samples, each block with what the others tell of f."""
        base = float(self.known[2][0])
        bits, sizes, values = (list(x) for x in zip(*asked, strict=True))
        fits = controls(bits, sizes, values, base)
        factors = np.divide(
            1.0,
            plan.block_size * plan.chances,
            out=np.zeros(plan.n_words),
            where=plan.chances > 0.0,
        )
        left = [
            (z, m, factors[m] * (f - fit.value(z)))
            for (z, m, f), fit in zip(asked, fits, strict=True)
        ]
        return replace(self, plan=plan, asked=asked, controls=fits, left=left)

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, without bias, (d + 1,)."""
        unknown, full = self._unknown, _mean_by_size(self.full)
        pairs = zip(self.controls, self.left, strict=True)
        return np.mean(
            [
                about.mean_by_size() * unknown + full + _mean_by_size(left)
                for about, left in pairs
            ],
            axis=0,
        )

    def first_moments(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes, without bias: (K, d)."""
        unknown, full = weights * self._unknown, _kept(self.full, weights)
        pairs = zip(self.controls, self.left, strict=True)
        return np.mean(
            [
                about.first_moments(unknown) + full + _kept(left, weights)
                for about, left in pairs
            ],
            axis=0,
        )

    @property
    def _unknown(self) -> Values:
        """1 for sizes of which not all sets were asked for, (d + 1,)."""
        return np.append(~self.plan.full, True).astype(float)

    def at(self, bandwidths: Values) -> WordCoefficients:
        """Coefficients at bandwidths ν (K,), with standard errors.

        Errors are the scatter of 20 unbiased blocks, 1.15 times and more.
        """
        result = [WordRegression(block).at(bandwidths) for block in self.blocks]
        coefficients = np.array([limits.coefficients for limits in result])
        intercept = np.array([limits.intercept for limits in result])
        correction = _correction(coefficients)
        return WordCoefficients(
            coefficients.mean(axis=0),
            intercept.mean(axis=0),
            correction[:, None] * error_of_blocks(coefficients),
            correction * error_of_blocks(intercept),
        )

    @property
    def blocks(self) -> list[SampledWords]:
        """What each block tells, alone."""
        pairs = zip(self.controls, self.left, strict=True)
        return [replace(self, controls=[own], left=[left]) for own, left in pairs]


WordMeans: TypeAlias = SetFunction | SampledWords
"""What knows the coefficients of a document at any bandwidth."""


def limits_of(means: WordMeans, bandwidths: Values) -> WordCoefficients:
    """Coefficients at bandwidths (K,), with standard errors where they have some."""
    if isinstance(means, SampledWords):
        return means.at(bandwidths)
    return WordRegression(means).at(bandwidths)


def _mean_by_size(sets: Answered) -> Values:
    """E_m f for m = 0, ..., d words kept, (d + 1,)."""
    bits, sizes, products = sets
    return np.asarray(np.bincount(sizes, products, bits.shape[1] + 1), float)


def _kept(sets: Answered, weights: Array) -> Array:
    """Σ_m w_m E_m[z_j f], (K, d)."""
    bits, sizes, products = sets
    return np.asarray((weights[:, sizes] * products) @ bits)


def estimate_words(
    evaluate: Callable[[Mask], Values],
    plan: SizePlan,
    seed: int = 0,
    bandwidth: float = TextLaw().bandwidth,
) -> SampledWords:
    """Samples of a function of words, by a plan.

    Sets are drawn size by size; each of 20 blocks is unbiased: what a fit to the other
    blocks says, on numbers of words, words and pairs of few, and what it leaves over.
    """
    whole = np.concatenate(
        [sets_of_size(plan.n_words, int(m)) for m in np.flatnonzero(plan.full)]
    )
    rng = stream_of(seed, 0)
    sets = [plan.draw(rng) for _ in range(LIME_BLOCKS)]
    every = np.concatenate([whole, *(z for z, _ in sets)])
    # together: a call costs more than its texts
    answers = np.asarray(evaluate(every), float)
    known, values = answers[: len(whole)], answers[len(whole) :]
    count = whole.sum(axis=1)
    full = whole, count, known / np.bincount(count)[count]
    first = whole, count, known
    empty = SampledWords(evaluate, seed, bandwidth, plan, full, [], [], first, ())
    return empty.of_samples(plan, _answered(sets, values))


def _answered(
    sets: Sequence[tuple[Mask, Indices]], values: Values
) -> tuple[Answered, ...]:
    """Samples of each block, with their values, which came together."""
    parts = np.split(np.asarray(values, float), len(sets))
    return tuple((z, m, f) for (z, m), f in zip(sets, parts, strict=True))


_DEVIATIONS: Final = 3.0
"""At which errors are as those of normal numbers; nearer ones hold a little more."""


def _correction(blocks: Array) -> Array:
    """Of scatters, so that three errors hold what three normal sd would: (K,).

    (mean − truth) √B / s of B blocks (B, K, d) has tails as Student's t, of
    2 σ⁴ / Var s² degrees, Var s² = σ⁴ (2 / (B − 1) + γ / B) with the excess kurtosis γ
    of all words together: 19 of normal blocks, 10 of those of five samples.
    """
    B = len(blocks)
    apart = blocks - blocks.mean(axis=0)
    square, fourth = (apart**2).mean(axis=0), (apart**4).mean(axis=0)
    g = np.divide(fourth, square**2, out=np.full(square.shape, 3.0), where=square > 0.0)
    g = (B - 1) / ((B - 2) * (B - 3)) * ((B + 1) * (g - 3.0) + 6.0)
    excess = np.maximum(g.mean(axis=-1), 0.0)
    freedom = 2.0 / (2.0 / (B - 1) + excess / B)
    return np.asarray(stdtrit(freedom, ndtr(_DEVIATIONS)) / _DEVIATIONS)


# ---- The model, the law and the documents that a result keeps for more computations


@final
@dataclass(frozen=True, eq=False)
class TextSubject:
    """A model of texts, a law and documents; not saved with their explanation."""

    function: TextFunction  # f
    law: TextLaw  # of the samples
    documents: tuple[TextDocument, ...]  # (N,): the texts
    draws: DrawPlan  # texts for each document with estimated limits
    max_enumerated: int = 0  # documents of so many words have all their sets evaluated
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

"""LIME run many times on one text, by the conventions of the package ``lime``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from papers.lime.runs import Runs, RunSettings, fit_bits, runs_together
from papers.text_lime.leverage import mean_of_runs
from propopt.base.arrays import Array, Mask, Values
from propopt.lime.text.word_limits import TextLaw, WordRegression
from propopt.structures.subsets.sets import SetFunction


def run_words(
    f: SetFunction, words: Sequence[str], law: TextLaw, settings: RunSettings
) -> Runs:
    """Runs of LIME on a text of d words.

    Parameters
    ----------
    f : SetFunction
        What is explained, of which words are kept.
    words : sequence of str (d,)
        The words.
    law : TextLaw
        Of samples and weights.
    settings : RunSettings
        How often, with how many samples; with ``first_row`` the whole text is one.
    """
    rng = np.random.default_rng(settings.seed)
    counts = runs_together(settings, f.n_words)
    return Runs(
        estimates=np.concatenate([_runs(f, law, settings, n, rng) for n in counts]),
        limit=limit_of(f, law),
        expected=expected_words(f, law, settings),
        labels=tuple(words),
    )


def limit_of(f: SetFunction, law: TextLaw) -> Values:
    """β_0, β_1, ..., β_d of infinitely many samples, (d + 1,)."""
    limits = WordRegression(f).at(np.array([law.bandwidth]))
    return np.concatenate([limits.intercept, limits.coefficients[0]])


def expected_words(f: SetFunction, law: TextLaw, settings: RunSettings) -> Values:
    """The mean of a run of n samples, intercept first, (d + 1,).

    See :func:`papers.text_lime.leverage.mean_of_runs`.
    """
    how = settings.n_samples, settings.ridge, settings.first_row
    result = mean_of_runs(f, law, *how)
    return np.concatenate([result.intercept, result.coefficients[0]])


def drawn_runs(
    law: TextLaw, n_words: int, settings: RunSettings, n_runs: int,
    rng: np.random.Generator,
) -> tuple[Mask, Array]:  # fmt: skip
    """Bits (R, n, d) and weights (R, n); of the whole text in the first row, if so."""
    first, n = int(settings.first_row), settings.n_samples
    bits, weights = law.draw(n_words, n_runs * (n - first), rng)
    whole = ((0, 0), (first, 0))
    by_run = bits.reshape(n_runs, n - first, n_words)
    return (
        np.pad(by_run, (*whole, (0, 0)), constant_values=True),
        np.pad(weights.reshape(n_runs, n - first), whole, constant_values=1.0),
    )


def _runs(
    f: SetFunction, law: TextLaw, settings: RunSettings, n_runs: int,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    bits, weights = drawn_runs(law, f.n_words, settings, n_runs, rng)
    values = f.value(bits.reshape(-1, f.n_words)).reshape(weights.shape)
    return fit_bits(bits.astype(float), weights, values, settings.ridge)

"""How far one run of LIME on a text is off what such runs give in their mean."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.batches import Budget
from propopt.lime.finite import SingleRun
from propopt.lime.finite.noise import covariances_of
from propopt.lime.text.finite.draws import WordDraws
from propopt.lime.text.finite.fit import TextFit
from propopt.lime.text.finite.patterns import Patterns, used_words
from propopt.lime.text.finite.sizes import SizeSystem
from propopt.lime.text.law import TextLaw
from propopt.memory import require_memory
from propopt.structures.subsets import SetFunction


_MOST_USED: Final = 12
"""Words that f or the fit tells apart, up to which the scatter is summed, not drawn."""

_TABLES: Final = Budget(2**26)

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

    Cov b = (n − 1) A⁻¹ Cov(π r Z) A⁻¹ with r = f − b_0 − bᵀz: the sandwich, with the
    weights of :func:`~propopt.lime.text.finite.leverage.effective_log_weights` and, in
    r², the scatter of the fit itself, so that it is right for few samples too. The
    document itself does not scatter.

    Of trees on few words, and of any f of at most 12 words, E π² r² Z Zᵀ is summed
    over all sets. Else it is the mean over draws of the law that is weighted by π²:
    deviations are known to about 2 % with 4096 of them.

    Parameters
    ----------
    function : SetFunction
        f, as a function of which words are kept.
    law : TextLaw
        How words are deleted.
    value : float or None
        f at the document; None takes it from ``function``.
    n_samples : int
        Samples of the run, the document itself included.
    ridge, first_row, kept, leverage
        As in :func:`~propopt.lime.text.finite.expected.expected_run`.
    draws : WordDraws, optional
        Samples whose values are known, as of a model that can only be called; they
        count by their sizes, in place of draws of ``function``.
    n_draws : int
        Evaluations where the scatter is not summed.
    rng : numpy.random.Generator, optional
        Where draws come from; by default of the seed 0.

    Returns
    -------
    SingleRun
        In one situation: arrays have one row.

    Raises
    ------
    InvalidInput
        If a setting is out of its range, or there are too few samples without ridge.

    Examples
    --------
    >>> from propopt.structures.subsets import Conjunctions
    >>> tree = Conjunctions.of([1.0, 1.0], [[0], [1, 2]], [[], [0]], 29)
    >>> run = single_text_run(tree, TextLaw(0.25), None, 5000)
    >>> run.standard_deviations[0, :4].round(4)
    array([0.0134, 0.0089, 0.0089, 0.0091])
    """
    own = TextFit.of(function, law, value, n_samples, ridge, first_row, kept, leverage)
    width = own.n_words + 1
    what = f"covariances of {width} coefficients"
    require_memory(6 * 8 * width**2, what, "explain a shorter text")
    if draws is None:
        used = used_words(function, kept)
        if len(used) <= _MOST_USED:
            second = _summed(own, Patterns.of(function, used, _square_shares(own)))
            return _run(own, second, ridge, leverage)
        generator = np.random.default_rng(0) if rng is None else rng
        draws = WordDraws.of_sizes(
            function.value, 2.0 * own.log_weights, n_draws, generator
        )
    return _run(own, _drawn(own, draws), ridge, leverage)


def _square_shares(own: TextFit) -> Values:
    """Log of what sizes count under the law of π², in all 1, (d + 1,)."""
    return np.asarray(2.0 * own.log_weights - np.log(own.n_words) - own.log_mean_square)


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
    for some in _TABLES.blocks(len(shares), 24 * (d + 1)):
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
        covariance[0] += _spread_by_fit(own, ridge, covariance[0])
    return SingleRun(fit.n_samples, fit.coefficients, fit.intercept, covariance)


def _spread_by_fit(own: TextFit, ridge: float, covariance: Array) -> Array:
    logs, n_samples = own.log_weights, own.fit.n_samples
    unit = float(logs.max())
    system = SizeSystem.of_run(logs, n_samples, ridge, own.first_row, unit)
    counts = own.fit.n_drawn / own.n_words * np.exp(2.0 * (logs - unit))
    return system.spread_by_fit(counts, covariance)

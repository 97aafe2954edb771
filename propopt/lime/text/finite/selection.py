"""Which words LIME keeps where it is to keep a few."""

from __future__ import annotations

import numpy as np

from propopt._typing import Positions, Truths, Values
from propopt.checks import read_count
from propopt.lime.finite.selection import Selection, named_selection
from propopt.lime.text.finite.fit import TextFit
from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import WordLimits
from propopt.structures.subsets import SizeMeans


_RIDGE = 0.01
"""The package's, of the fit whose weights are compared."""

_ALIKE = 1e-12


def kept_words(
    function: SizeMeans | WordLimits,
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
    of those that are kept. Forward selection adds the word that raises the explained
    share most; the highest weights are the largest |coefficients| of a fit to all words
    with ridge 0.01. Of words that are alike the first are kept, where runs take any of
    them: :func:`~propopt.lime.finite.ranking_chances` tells how often others win.

    Parameters
    ----------
    function : SizeMeans or WordLimits
        f, as a function of which words are kept, or its limits.
    law : TextLaw
        How words are deleted.
    value : float or None
        f at the document; None takes it from ``function``.
    n_kept : int
        K; where there are fewer words, all are kept.
    how : {"auto", "forward_selection", "highest_weights"}
        As in the package, where auto adds one after the other up to K = 6.
    n_samples : int
        Samples, the document itself included.
    first_row : bool
        Whether it is one.

    Raises
    ------
    InvalidInput
        If ``how`` is none of these.

    Examples
    --------
    >>> from propopt.structures.subsets import Conjunctions
    >>> tree = Conjunctions.of([1.0, 1.0], [[0], [1, 2]], [[], [0]], 5)
    >>> kept_words(tree, TextLaw(), None, 3)
    array([ True,  True,  True, False, False])
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

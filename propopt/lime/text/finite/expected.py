"""What LIME on a text gives with n samples, in the mean of runs."""

from __future__ import annotations

from typing import NamedTuple

from propopt._typing import Truths, Values
from propopt.lime.text.finite.fit import TextFit
from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import WordLimits
from propopt.structures.subsets import SizeMeans


class ExpectedWords(NamedTuple):
    """Coefficients of a run of n samples around one document, in the mean of runs."""

    coefficients: Values
    """b_1, ..., b_d, (d,); 0 for words that are not fitted."""

    intercept: float
    """b_0."""


def expected_run(
    function: SizeMeans | WordLimits,
    law: TextLaw,
    value: float | None,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    kept: Truths | None = None,
    *,
    leverage: bool = True,
) -> ExpectedWords:
    """What the package ``lime`` gives with n samples, in the mean of runs.

    The solution of ((n − 1) Σ̃ + v vᵀ + λ D) b = (n − 1) Γ̃ + v f(ξ), v = (1, ..., 1),
    D = diag(0, 1, ..., 1): the package penalises all coefficients but the intercept by
    λ = 1, and the document itself, with weight 1, is its first sample. Σ̃ and Γ̃ have
    weights less what samples pull the fit to themselves, see
    :func:`~propopt.lime.text.finite.leverage.effective_log_weights`. Without that
    (``leverage=False``) the equations are right for n much larger than d only: with
    d = 29, ν = 0.25 and f = z_1 + (1 − z_1) z_2 z_3 the coefficient of z_1 is 0.378 in
    the mean of runs of n = 50; they say 0.456, with leverage 0.382, and the limit is
    0.558.

    Parameters
    ----------
    function : SizeMeans or WordLimits
        f, as a function of which words are kept. Or its limits, which cannot be weighed
        anew, so that leverage is not counted.
    law : TextLaw
        How words are deleted.
    value : float or None
        f at the document. None takes it from ``function``; of limits it is needed where
        the document is a sample.
    n_samples : int
        Samples, the document itself included.
    ridge : float
        λ.
    first_row : bool
        Whether the document itself is the first sample.
    kept : array of bool (d,), optional
        The words that are fitted, of :func:`~propopt.lime.text.finite.kept_words`; by
        default all.
    leverage : bool
        Whether samples count less by what they pull the fit to themselves.

    Returns
    -------
    ExpectedWords
        Coefficients (d,) and intercept.

    Raises
    ------
    InvalidInput
        If a setting is out of its range, or there are too few samples without ridge.

    Examples
    --------
    >>> from propopt.structures.subsets import Conjunctions
    >>> tree = Conjunctions.of([1.0, 1.0], [[0], [1, 2]], [[], [0]], 29)
    >>> found = expected_run(tree, TextLaw(0.25), None, 50)
    >>> found.coefficients[:4].round(3)
    array([0.382, 0.136, 0.136, 0.009])
    """
    fit = TextFit.of(
        function, law, value, n_samples, ridge, first_row, kept, leverage
    ).fit
    return ExpectedWords(fit.coefficients[0], float(fit.intercept[0]))

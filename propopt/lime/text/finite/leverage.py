"""How much samples count in the mean of runs: less where they pull the fit."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Values
from propopt.checks import read_count, read_nonnegative
from propopt.errors import InvalidInput
from propopt.lime.text.finite.sizes import SizeSystem
from propopt.lime.text.law import TextLaw


_MOST_STEPS: Final = 20_000
_SETTLED: Final = 1e-13


def effective_log_weights(
    law: TextLaw,
    n_words: int,
    n_samples: int,
    ridge: float = 1.0,
    first_row: bool = True,
    n_kept: int | None = None,
) -> Values:
    """Log weights that samples have in the mean of runs, (d + 1,).

    A sample with the leverage q = Zᵀ A⁻¹ Z among the others moves the fit to itself, so
    that it counts as if its weight were

    π̃ = π / (1 + π q),   A = (n − 1) E[π̃ Z Zᵀ] + v vᵀ + λ D.

    q of bits that are exchangeable is known by the size of what is kept, and A by its
    two eigenvalues, so that π̃ is found by fixed-point steps on d + 1 numbers. The mean
    of a run is, but for what is smaller, that of the normal equations with π̃ in place
    of π: with many samples to the order 1 / n, of which ridge and the row are only a
    part; and with as few as there are words too, as leverages then hardly scatter.

    Parameters
    ----------
    law : TextLaw
        How words are deleted.
    n_words : int
        d.
    n_samples : int
        Samples of a run, the document itself included.
    ridge : float
        λ.
    first_row : bool
        Whether the document itself is the first sample.
    n_kept : int, optional
        How many words are fitted; by default all.

    Raises
    ------
    InvalidInput
        If there is no ridge, and there are no more samples than coefficients.

    Examples
    --------
    >>> own = TextLaw().log_weights(29)[:29]
    >>> few = effective_log_weights(TextLaw(), 29, 50)[:29]
    >>> np.exp(few - own).round(2)[[0, 14, 28]]
    array([1.  , 0.44, 0.66])
    """
    fitted = 1 + (n_words if n_kept is None else n_kept)
    read_count(n_samples, "n_samples")
    if read_nonnegative(ridge, "ridge") == 0.0 and n_samples <= fitted:
        raise InvalidInput(
            f"n_samples: without ridge expected more than {fitted} for as many "
            f"coefficients, got {n_samples}"
        )
    logs = law.log_weights(n_words)
    ratio, unit = np.ones(n_words + 1), float(logs.max())
    for _ in range(_MOST_STEPS):
        before, own = ratio, logs + np.log(ratio)
        system = SizeSystem.of_run(own, n_samples, ridge, first_row, unit)
        ratio = 1.0 / (1.0 + system.pulls(logs, n_kept))
        if np.abs(ratio - before).max() < _SETTLED:
            break
    return np.asarray(logs + np.log(ratio))

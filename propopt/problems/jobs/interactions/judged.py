"""How well the predictor does whose features are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.base import is_classifier

from propopt._typing import Array
from propopt.interactions import ILOCO
from propopt.interactions.features import WHOLE


@final
@dataclass(frozen=True)
class Judged:
    """Mean errors at rows that a predictor did not see.

    Parameters
    ----------
    mean : float
        Of the predictor that has all features.
    constant : float
        Of the mean of the target, or of how often classes come, at all rows.
    name : str
        Of the error.
    """

    mean: float
    constant: float
    name: str

    @classmethod
    def of(cls, fitted: ILOCO, y: Any) -> Self:
        """Those of a fitted estimator, and of a constant for the same target."""
        source, error = fitted.left_out_, fitted.error_
        rows = source.errors(WHOLE).rows[:, 0]
        mean = float(source.row_weights @ rows / len(rows))
        answers, target = _constant(fitted, np.asarray(y))
        known = error.known(answers, target)
        constant = float(error.of(target, known[:, None, :]).mean())
        return cls(mean, constant, error.name)

    def in_words(self) -> str:
        """On one line."""
        verdict = "" if self.mean < self.constant else ", no better than a constant"
        return (
            f"mean {self.name} error with all features: {self.mean:.4g}, at rows not "
            f"seen; of a constant {self.constant:.4g}{verdict}"
        )


def _constant(fitted: ILOCO, y: Any) -> tuple[Array, Any]:
    """The same answer for each row, and the target as errors take it."""
    if not is_classifier(fitted.estimator):
        return np.full(len(y), y.mean()), y
    _, places = np.unique(y, return_inverse=True)
    shares = np.bincount(places) / len(places)
    return np.tile(shares, (len(places), 1)), places

"""How well a fitted model does on rows that it was not fitted on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score

from propopt.threads import threads_of_run


HELD_OUT: Final = "held-out rows"
MAYBE_FITTED: Final = "rows that it may have been fitted on"


@dataclass(frozen=True)
class ModelScore:
    """A score of a fitted model.

    Parameters
    ----------
    name : str
        ``"accuracy"`` of a classifier, ``"R²"`` of a regression.
    value : float
        At most 1.
    n_rows : int
        How many rows it is of.
    rows : str
        Which rows these are.
    constant : float
        The score of the best constant answer on these rows: their commonest label, or
        their mean, whose R² is 0.

    Examples
    --------
    >>> ModelScore("accuracy", 0.9733, 150, constant=0.6267).in_words()
    'accuracy 0.973 on 150 held-out rows'
    >>> ModelScore("R²", -0.27, 147).in_words()
    'R² -0.270 on 147 held-out rows, no better than a constant'
    """

    name: str
    value: float
    n_rows: int
    rows: str = HELD_OUT
    constant: float = 0.0

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, rows: str = HELD_OUT) -> ModelScore:
        """That of a fitted estimator on rows with their target."""
        with threads_of_run(len(X)):
            answers = model.predict(X)
        if is_classifier(model):
            value, commonest = accuracy_score(y, answers), Counter(y).most_common(1)
            constant = commonest[0][1] / len(y)
            return cls("accuracy", float(value), len(y), rows, constant)
        return cls("R²", float(r2_score(y, answers)), len(y), rows)

    def in_words(self) -> str:
        """On one line."""
        verdict = "" if self.value > self.constant else ", no better than a constant"
        return f"{self.name} {self.value:.3f} on {self.n_rows:,} {self.rows}{verdict}"


@dataclass(frozen=True)
class Unscored:
    """No score, and why.

    Parameters
    ----------
    reason : str
        In a few words.
    """

    reason: str

    def in_words(self) -> str:
        """On one line."""
        return self.reason


def score_of(model: Any, X: Any, y: Any, rows: str = HELD_OUT) -> ModelScore | Unscored:
    """The score of an estimator, or why there is none."""
    if not is_classifier(model) and len(y) < 2:
        return Unscored("one held-out row, too few for R²")
    try:
        return ModelScore.of(model, X, y, rows)
    except ValueError as error:  # such as labels of another kind
        return Unscored(f"no score: {error}")

"""How well a fitted model does on rows that it was not fitted on."""

from __future__ import annotations

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

    Examples
    --------
    >>> ModelScore("accuracy", 0.9733, 150).in_words()
    'accuracy 0.973 on 150 held-out rows'
    """

    name: str
    value: float
    n_rows: int
    rows: str = HELD_OUT

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, rows: str = HELD_OUT) -> ModelScore:
        """That of a fitted estimator on rows with their target."""
        with threads_of_run(len(X)):
            answers = model.predict(X)
        if is_classifier(model):
            return cls("accuracy", float(accuracy_score(y, answers)), len(y), rows)
        return cls("R²", float(r2_score(y, answers)), len(y), rows)

    def in_words(self) -> str:
        """On one line."""
        return f"{self.name} {self.value:.3f} on {self.n_rows:,} {self.rows}"


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

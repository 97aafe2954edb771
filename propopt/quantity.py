"""What is explained: one output of a model, in words that a reader can check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self, TypeAlias, final


QuantityKind: TypeAlias = Literal["value", "probability", "log_odds", "margin"]
"""``predict``; ``predict_proba``; log p/(1 − p); ``decision_function``."""

ClassLabel: TypeAlias = str | int | float | bool

_NOUNS: Final[Mapping[str, str]] = {
    "probability": "probability",
    "log_odds": "log-odds",
    "margin": "margin",
}


@final
@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One number that a model gives for each row, such as the log-odds of a class.

    Parameters
    ----------
    model : str
        The model's name, such as that of its class.
    kind : {"value", "probability", "log_odds", "margin"}
        What the number is. A margin that equals the log-odds is log-odds.
    label : str, int, float or bool, optional
        The class, of a classifier; None for other models.
    position : int, optional
        Which of several numbers, of a model that gives several.
    outcome : str, optional
        The name of the column that the model was taught to predict.

    Examples
    --------
    >>> from propopt.quantity import Quantity
    >>> print(Quantity(model="LGBMClassifier", kind="log_odds", label=1))
    log-odds of class 1, by LGBMClassifier
    >>> Quantity(model="SVC", kind="probability", label="malignant").in_words()
    'probability of malignant'
    >>> churn = Quantity(model="SVC", kind="margin", label=1, outcome="churn")
    >>> churn.in_words()
    'margin of churn = 1'
    >>> Quantity(model="Ridge").in_words()
    'prediction of Ridge'
    >>> Quantity(model="Ridge", outcome="price").in_words()
    'predicted price'
    """

    model: str
    kind: QuantityKind = "value"
    label: ClassLabel | None = None
    position: int | None = None
    outcome: str | None = None

    @property
    def noun(self) -> str:
        """What the number is, without of what: for units."""
        return _NOUNS.get(self.kind, "prediction")

    def in_words(self) -> str:
        """What is explained, without the model where it is clear without."""
        if self.kind == "value":
            place = "" if self.position is None else f" {self.position}"
            if self.outcome is None:
                return f"prediction{place} of {self.model}"
            return f"predicted {self.outcome}{place}"
        return f"{_NOUNS[self.kind]} of {self._event}"

    def __str__(self) -> str:
        words = self.in_words()
        by_name = self.kind == "value" and self.outcome is None
        return words if by_name else f"{words}, by {self.model}"

    def of_outcome(self, outcome: str | None) -> Self:
        """The same of a column that is known by name; None changes nothing."""
        return self if outcome is None else replace(self, outcome=str(outcome))

    @property
    def _event(self) -> str:
        """What is probable, such as ``"churn = 1"``."""
        label, position = self.label, self.position
        if label is None:  # a torch module has scores without names
            label = 1 if position is None else position
        if self.outcome is not None:
            return f"{self.outcome} = {label}"
        return label if isinstance(label, str) else f"class {label}"

    def as_fields(self) -> dict[str, Any]:
        """Its fields as plain values, which ``Quantity(**fields)`` takes."""
        return dict(vars(self))

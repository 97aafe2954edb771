r"""Names as safe text, numbers in words, and the explained quantity.

Names come from tables, files and users. Where a name is shown, control characters,
marks that change the writing direction, and invalid UTF-8 become visible escapes such
as ``\x1b``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from numbers import Integral, Real
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar, final

from propopt.base.errors import InvalidInput


_Name = TypeVar("_Name", bound=Hashable)
_Value = TypeVar("_Value", bound=Hashable)


# ---- Names as text: no name is a command to a terminal or a page


HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, among them the escape of terminals
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # ends of lines, direction
    "\ufeff\ufff9-\ufffb\ufffe\uffff"  # marks, and what no XML may hold
    "\ud800-\udfff]"  # halves of characters: bytes of file names that are no UTF-8
)


def plain_name(name: object) -> int | float | str:
    """A name for a file: numbers stay numbers, anything else becomes text."""
    if isinstance(name, Integral):
        return int(name)
    if not isinstance(name, float):
        return str(name)
    return math.nan if math.isnan(name) else float(name)  # one NaN, which is itself


def printable(name: object) -> str:
    r"""The name on one line, with visible escapes for control characters."""
    return HIDDEN.sub(_escaped, str(name))


def printable_lines(text: object) -> str:
    """The text with its line breaks, and visible escapes for control characters."""
    return "\n".join(map(printable, str(text).split("\n")))


def matplotlib_text(name: object) -> str:
    r"""The name for matplotlib, with ``$`` escaped so that it is not a formula."""
    return printable(name).replace("$", r"\$")


def in_html(text: object) -> str:
    """The text for an HTML page, with all markup escaped."""
    return escape(printable(text))


def first_line(error: BaseException) -> str:
    """The first line of the message of an error."""
    return str(error).partition("\n")[0]


def enumerated(words: Sequence[str], last: str) -> str:
    """Words joined for a sentence: ``"a, b or c"``."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def repeated(names: Iterable[_Name]) -> list[_Name]:
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def shared(values: Iterable[_Value | None]) -> _Value | None:
    """The value of all that have one; None if none has one, or values differ."""
    distinct = {value for value in values if value is not None}
    return distinct.pop() if len(distinct) == 1 else None


def in_short(value: object) -> str:
    """The value of a setting; floats have four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def value_in_words(value: Any, categories: Sequence[str] | None = None) -> str:
    """A value of a column, or the name of its category, as in files: with a hyphen.

    Numbers have four digits, and all digits before the decimal point.

    Examples
    --------
    >>> [value_in_words(x) for x in (33424.0, 0.123456, -5, True, None)]
    ['33424', '0.1235', '-5', 'True', 'missing']
    """
    if value is None or type(value).__name__ == "NAType" or value != value:  # NaN, NaT
        return "missing"
    if categories is not None:
        return categories[int(value)]
    if isinstance(value, Real) and not isinstance(value, Integral):
        number = float(value)
        return f"{number:.0f}" if 1e4 <= abs(number) < 1e16 else f"{number:.4g}"
    return str(value).removesuffix(" 00:00:00")  # of a date


def _escaped(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape").decode("ascii")


# ---- Reasons for unavailable values, which are no errors


@final
@dataclass(frozen=True)
class Reason:
    """The reason why a value is unavailable, returned in its place."""

    reason: str  # half a sentence, with a remedy if there is one

    def in_words(self) -> str:
        """The reason as text, like the description of an available value."""
        return self.reason


# ---- Numbers: gaps, shares, quantities


_ROUNDING: Final = 1e-12
"""Gaps and percentages below this are rounding."""


def gap_cell(gap: float) -> str:
    """A gap in two digits; 0 below rounding."""
    return "0" if gap <= _ROUNDING else f"{gap:.1e}"


# ---- The explained quantity: one output of a model in words


QuantityKind: TypeAlias = Literal[
    "value", "probability", "log_odds", "margin", "log", "logit", "score"
]
"""``predict``; ``predict_proba``; log p/(1 − p); ``decision_function``; then the margin
of a model without classes: the logarithm or the log-odds of ``predict``, or another
function of it."""

ClassLabel: TypeAlias = str | int | float | bool

Outcome: TypeAlias = str | Mapping[Any, str]
"""The name of the predicted column, or a name for each class of it."""

_NOUNS: Final[Mapping[str, str]] = {
    "probability": "probability",
    "log_odds": "log-odds",
    "margin": "margin",
    "log": "log of the prediction",
    "logit": "log-odds of the prediction",
    "score": "margin of the prediction",
}


@final
@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One output of a model for each row, such as the log-odds of a class."""

    model: str  # the model's name, such as that of its class
    # the kind of output; a margin that equals the log-odds is log-odds
    kind: QuantityKind = "value"
    label: ClassLabel | None = None  # the class, of a classifier; None for other models
    # the position among several outputs or labels
    position: int | None = None
    # the name of the predicted column
    outcome: str | None = None
    # the name of the class that stands alone, such as "malignant"; None for its label
    event: str | None = None
    # the name of the other one of two classes, if classes have names
    opposite: str | None = None
    words: str | None = None  # the description of a sum of outputs
    # the other one of probability and log-odds, if the model has a finite one
    alternative: QuantityKind | None = field(default=None, compare=False)

    @classmethod
    def sum_of(
        cls, parts: Sequence[tuple[float, Quantity]], base: float = 0.0
    ) -> Quantity:
        """Base + Σ weight · quantity, such as the difference of two predictions."""
        ordered = sorted(parts, key=lambda part: part[0] < 0.0)
        weights = [weight for weight, _ in ordered]
        first = ordered[0][1]
        names = [quantity.model for _, quantity in ordered]
        by = " and ".join(dict.fromkeys(names))
        is_uniform = len({replace(quantity, model="") for _, quantity in ordered}) == 1
        is_mean = all(math.isclose(weight * len(parts), 1.0) for weight in weights)
        if weights == [1.0, -1.0]:
            noun = "difference"
            by = " minus ".join(names)
        elif set(weights) == {1.0}:
            noun = "sum"
        elif is_mean:
            noun = "mean"
        else:
            noun = "weighted sum"
            # few terms with names are written as a formula with their weights
            is_uniform &= len(parts) > MOST_WRITTEN or not first.is_by_name
        words = f"{noun} of {first.of_several}{_constant(base)}"
        if len(parts) == 1 or not is_uniform:
            words = _formula(ordered, base)
        shared = first if is_uniform or len(parts) == 1 else cls(model=by)
        return replace(shared, model=by, words=words)

    @property
    def is_by_name(self) -> bool:
        """Whether only the model's name describes the quantity."""
        return self.kind == "value" and self.outcome is None

    @property
    def of_several(self) -> str:
        """The description for several models."""
        if not self.is_by_name:
            return self.in_words()
        return "predictions" + ("" if self.position is None else f" {self.position}")

    @property
    def noun(self) -> str:
        """The kind of output as a noun, for units."""
        return _NOUNS.get(self.kind, "prediction")

    @property
    def unit(self) -> str:
        """The unit of the output, such as log-odds or euros."""
        if self.words is None and self.kind == "value":
            return self.outcome or "units of the prediction"
        return self.noun if self.words is None else self.in_words()

    @property
    def choice(self) -> str:
        """The unit, and the ``output`` that gives the other one."""
        words = self.noun
        if self.alternative is not None:
            other = _NOUNS[self.alternative]
            words += f"; output={self.alternative!r} gives the {other}"
        return words

    def in_words(self) -> str:
        """The quantity in words, with the model only where it is necessary."""
        if self.words is not None:
            return self.words
        number = "" if self.position is None else f" {self.position}"
        named = "prediction" if self.outcome is None else f"predicted {self.outcome}"
        if self.kind == "value":
            by = f" of {self.model}" if self.outcome is None else ""
            return f"{named}{number}{by}"
        if self.kind in ("log", "logit", "score"):
            is_only = self.outcome is None and not number
            value = "the prediction" if is_only else f"{named}{number}"
            return self.noun.replace("the prediction", value)
        return f"{_NOUNS[self.kind]} of {self._event}"

    def __str__(self) -> str:
        words = self.in_words()
        named = self.is_by_name if self.words is None else self.model in words
        return words if named else f"{words}, by {self.model}"

    def of_outcome(
        self, outcome: Outcome | None, classes: Sequence[ClassLabel] | None = None
    ) -> Self:
        """The quantity with the name of the predicted column, or names of its classes.

        Class 1 of 0 and 1 is called by the column. None changes nothing.
        """
        if outcome is None:
            return self
        label = self._label
        if isinstance(outcome, Mapping):
            self._check_names(outcome, classes)
            others = [str(name) for key, name in outcome.items() if key != label]
            opposite = others[0] if len(others) == 1 else None
            return replace(self, event=str(outcome[label]), opposite=opposite)
        pair = str(label), *(str(x) for x in classes or (0, 1) if x != label)
        is_alone = self._is_of_class and self.position is None and pair in _YES_OR_NO
        event = str(outcome) if is_alone else None
        return replace(self, outcome=str(outcome), event=event)

    def _check_names(
        self, names: Mapping[Any, str], classes: Sequence[ClassLabel] | None
    ) -> None:
        """Refuse names of classes that a model does not have, and missing ones."""
        if not self._is_of_class:
            raise InvalidInput(
                f"outcome: names of classes are for classifiers, and {self.model} "
                "predicts a number; give one name, such as outcome='price'"
            )
        expected = [*(names if classes is None else classes)]
        if {*names} != {*expected, self._label}:
            raise InvalidInput(
                f"outcome: expected a name for each class, {expected}, got names for "
                f"{[*names]}"
            )

    def side(self, towards: str) -> str:
        """``higher`` or ``lower`` for the name of a class, or else unchanged."""
        return {self.event: "higher", self.opposite: "lower"}.get(towards, towards)

    def decision(self, towards: str) -> str:
        """The decision of reasons, such as "for default" or "for a higher output"."""
        if not self._is_of_class or self.words is not None:
            return f"for a {towards} output"
        if towards == "higher":
            return f"for {self._event}"
        return f"for {self.opposite}" if self.opposite else f"against {self._event}"

    @property
    def _is_of_class(self) -> bool:
        return self.kind in ("probability", "log_odds", "margin")

    @property
    def _label(self) -> ClassLabel:
        """The class; a torch module and a native booster have scores without labels."""
        if self.label is not None:
            return self.label
        return 1 if self.position is None else self.position

    @property
    def _event(self) -> str:
        """The event of a probability, such as ``"churn"`` or ``"churn = 2"``."""
        label = self._label
        event = label if isinstance(label, str) else f"class {label}"
        if self.event is not None:
            event = self.event
        elif self.outcome is not None:
            event = f"{self.outcome} = {label}"
        several = self.label is not None and self.position is not None
        return f"{event} of output {self.position}" if several else event


_YES_OR_NO: Final = ("1", "0"), ("1.0", "0.0"), ("True", "False")

MOST_WRITTEN: Final = 4
"""The most terms that are written as a formula."""


def _formula(parts: Sequence[tuple[float, Quantity]], base: float) -> str:
    """A formula such as ``"prediction of Ridge − 2 × prediction of SVR + 1"``."""
    if len(parts) > MOST_WRITTEN:
        return f"sum of {len(parts)} functions"
    terms = [(weight, quantity.in_words()) for weight, quantity in parts]
    return linear_sum(terms, sign="−", times=" × ") + _constant(base)


def _constant(base: float) -> str:
    return "" if base == 0.0 else f" {'−' if base < 0.0 else '+'} {abs(base):.6g}"


def linear_sum(
    terms: Iterable[tuple[float, str]], *, sign: str = "-", times: str = " * "
) -> str:
    """A weighted sum as a formula: ``"a - 2 * b"``."""
    result = ""
    for weight, term in terms:
        size = "" if abs(weight) == 1.0 else f"{abs(weight):.6g}{times}"
        between = f" {sign} " if weight < 0.0 else " + "
        if not result:
            between = sign if weight < 0.0 else ""
        result += f"{between}{size}{term}"
    return result


def plural(count: int, noun: str) -> str:
    """A count with its noun, such as ``"3 rows"``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

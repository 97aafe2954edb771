"""What all sections of a problem file have in common."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, cleandoc, signature
from math import isfinite
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from propopt.base.errors import (
    Infeasible,
    InvalidInput,
    MissingExtra,
    ProblemFileError,
    PropoptError,
    Refused,
)


class Section(BaseModel):
    """A mapping whose keys are known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    makes: ClassVar[Any] = None
    """What takes its settings, where one constructor does."""

    def settings(self, *others: str) -> dict[str, Any]:
        """The values of its keys, but of some others."""
        return {name: value for name, value in self if name not in others}


Made = TypeVar("Made", bound=Section)


def section_of(
    made: Any,
    base: type[Made],
    name: str = "",
    doc: str = "",
    /,
    *,
    told: Any = None,
    also: Any = None,
    without: Collection[str] = (),
    **said: Any,
) -> type[Made]:
    """A section with the settings of a constructor or a function, declared there.

    Names, defaults, kinds and what each setting is for are those of its signature and
    its docstring, or of the docstring of ``told``, and perhaps of ``also``, but of some
    that a file does not say. What is said besides: the kind that a file writes, what
    it is for, a pair of both, or both and a default. A setting that is not of the
    constructor is required.
    """
    taken, hints = {**signature(made).parameters}, _hints(made)
    words = sentences_of(told or made)
    if also is not None:
        taken = {**signature(also).parameters, **taken}
        hints, words = _hints(also) | hints, sentences_of(also) | words
    hidden = {*without, *base.model_fields}
    own = [x for x in taken if x in said or (x in hints and x not in hidden)]
    fields: Any = {}
    for setting in (*(x for x in said if x not in taken), *own):
        known = setting in taken and taken[setting].default is not Parameter.empty
        default = taken[setting].default if known else ...
        kind, use = _written(hints.get(setting, Any)), words.get(setting)
        match said.get(setting):
            case None:
                pass
            case str(use):
                pass
            case (kind, use):
                pass
            case (kind, use, default):
                pass
            case other:
                kind = other
        fields[setting] = kind, Field(default, description=use)
    summary = cleandoc(made.__doc__ or "").partition("\n")[0]
    doc = doc or (summary if name else base.__doc__ or "")
    section: Any = create_model(
        name or base.__name__, __base__=base, __doc__=doc, **fields
    )
    section.makes = staticmethod(made)
    return section


def _hints(made: Any) -> dict[str, Any]:
    """The types of what is taken, but what it returns."""
    is_plain = isinstance(made, type) and not is_dataclass(made)
    told = made.__init__ if is_plain else made
    hints = get_type_hints(told, include_extras=True)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _written(hint: Any) -> Any:
    """What a file writes for a type: counts and scales are of a size one can mean."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return Union[tuple(map(_written, get_args(hint)))]  # noqa: UP007 - of a tuple
    return {int: Count, float: Positive}.get(hint, hint)


def sentences_of(made: Any) -> dict[str, str]:
    """What each parameter is for: a sentence of a docstring in numpydoc's style."""
    text = cleandoc(made.__doc__ or "").partition("Parameters\n----------\n")[2]
    text = re.split(r"\n\n\w[\w ]*\n---", text)[0]
    parts = re.findall(r"^(\w[\w, ]*?)(?: :.*)?\n((?:(?: .*)?\n?)*)", f"{text}\n", re.M)
    plain = {names: re.sub(r":\w+:|``?", "", x) for names, x in parts}
    return {
        name: re.split(r"\.(?: [A-Z.]|$)", " ".join(words.split()))[0]
        for names, words in plain.items()
        for name in names.split(", ")
    }


@dataclass(frozen=True)
class OneOf:
    """Annotates a section: one of these, which a key tells apart."""

    key: str
    sections: tuple[type[Section], ...]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        union: Any = Union[self.sections]  # noqa: UP007 - of a tuple
        del source
        return handler.generate_schema(Annotated[union, Field(discriminator=self.key)])


def _not_tiny(value: float) -> float:
    if 0 < value < 1e-100:
        raise PydanticCustomError("tiny", "expected 0, or a number >= 1e-100")
    return value


Positive: TypeAlias = Annotated[
    float, Field(gt=0, le=1e100, allow_inf_nan=False), AfterValidator(_not_tiny)
]
Nonnegative: TypeAlias = Annotated[
    float, Field(ge=0, le=1e100, allow_inf_nan=False), AfterValidator(_not_tiny)
]
"""Weights and scales: their products and squares neither overflow nor vanish."""
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
MOST_NUMBERS: Final = 10_000_000
"""Of any count, and of points × dimensions that a file asks for."""
Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST_NUMBERS)]
Seed: TypeAlias = Annotated[int, Field(ge=0, le=2**32 - 1)]


class Interval(Section):
    """From low to high."""

    low: Finite
    high: Finite

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if not isfinite(self.high - self.low):
            raise PydanticCustomError("range", "low and high are too far apart")
        if self.low >= self.high:
            raise PydanticCustomError(
                "range",
                "expected low < high, got low {low} and high {high}",
                {"low": f"{self.low:g}", "high": f"{self.high:g}"},
            )
        return self


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("label_type", "expected text or a number")
    return value


Label: TypeAlias = Annotated[str | int | float | bool, BeforeValidator(_scalar)]


def refuse_settings(section: Section, chosen: str, names: tuple[str, ...]) -> None:
    """What would have no effect beside a choice is a mistake."""
    for name in sorted(set(names) & section.model_fields_set):
        raise PydanticCustomError(
            "no_effect",
            "{name} has no effect with {chosen}",
            {"name": name, "chosen": chosen},
        )


def shaped(error: str, expected: str, **shapes: Any) -> Discriminator:
    """What chooses among tagged types: the first of which a value is, or a word."""

    def shape(value: Any) -> str | None:
        for tag, kind in shapes.items():
            if value == kind if isinstance(kind, str) else isinstance(value, kind):
                return tag
        return None

    return Discriminator(shape, custom_error_type=error, custom_error_message=expected)


def listed_words(words: Collection[str], last_by: str = "and") -> str:
    """``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} {last_by} {last}" if others else last


# ---- Which part of a problem an error is of, in Python as in a file


Location: TypeAlias = tuple[str | int, ...]
"""Keys and positions on the way, such as ``("baselines", 0, "scale")``."""

OF_INPUT: Final = (InvalidInput, Refused, Infeasible, MissingExtra)
"""What is wrong with a problem, not with a solver."""


@contextmanager
def part(*location: str | int) -> Iterator[None]:
    """Errors of input raised inside know that they are of this part of the problem."""
    try:
        yield
    except OF_INPUT as error:
        error.part = (*location, *error.part)
        raise


class Missing(str):
    """A key at the end of a location, which ought to be there."""


def wrong(message: str, *location: str | int) -> InvalidInput:
    """The error of a part of the problem."""
    error = InvalidInput(message)
    error.part = location
    return error


class Mistakes(InvalidInput):
    """Several, each with its part."""

    def __init__(self, found: Iterable[PropoptError]) -> None:
        self.found = tuple(found)
        super().__init__("\n".join(map(str, self.found)))


@final
class Faults:
    """Mistakes that are found apart from each other, told together."""

    def __init__(self, *found: PropoptError) -> None:
        self.found = [*found]

    @contextmanager
    def noted(self, *location: str | int) -> Iterator[None]:
        """A mistake that is raised inside is kept, and what follows goes on."""
        try:
            with part(*location):
                yield
        except (*OF_INPUT, ProblemFileError) as error:
            self.found.append(error)

    def add(self, message: str, *location: str | int) -> None:
        """One more mistake."""
        self.found.append(wrong(message, *location))

    def refuse(self) -> None:
        """Raise what was found, if anything was."""
        found, self.found = self.found, []
        if found:
            raise found[0] if len(found) == 1 else Mistakes(found)


@contextmanager
def together() -> Iterator[Faults]:
    """What is found inside, and the last that is raised, is told at the end."""
    faults = Faults()
    with faults.noted():
        yield faults
    faults.refuse()


# ---- Sections on what is swept: weights, limits, and how many of them


MOST_WEIGHTS: Final = 100_000
"""Of a range, and combinations of a sweep."""


class WeightRange(Interval):
    """Weights from low to high."""

    low: Nonnegative
    high: Positive
    points: Annotated[int, Field(ge=2, le=MOST_WEIGHTS)]
    scale: Literal["log", "linear"] = "log"

    @model_validator(mode="after")
    def _positive(self) -> WeightRange:
        if self.scale == "log" and self.low == 0:
            raise PydanticCustomError(
                "log_low", "a log scale needs low > 0; or use scale: linear"
            )
        return self

    def build(self) -> list[float]:
        """The weights."""
        space = np.geomspace if self.scale == "log" else np.linspace
        return [float(v) for v in space(self.low, self.high, self.points)]


Weights: TypeAlias = Annotated[
    Annotated[list[Nonnegative], Field(min_length=1), Tag("list")]
    | Annotated[WeightRange, Tag("range")],
    shaped(
        "weights_type",
        "expected a list or a range",
        list=list,
        range=(dict, WeightRange),
    ),
]


def count_weights(values: Weights) -> int:
    """How many there are, before any is made."""
    return values.points if isinstance(values, WeightRange) else len(values)


# ---- Sections on the kernel widths of LIME: one, some, or a range


MOST_WIDTHS: Final = 1000
"""Of a list or a range."""


class WidthRange(Interval):
    """Kernel widths from low to high, at equal ratios."""

    low: Positive
    high: Positive
    points: Annotated[int, Field(ge=2, le=MOST_WIDTHS)]

    def build(self) -> list[float]:
        """The widths."""
        return [float(v) for v in np.geomspace(self.low, self.high, self.points)]


KernelWidths: TypeAlias = Annotated[
    Annotated[Positive, Tag("number")]
    | Annotated[
        list[Positive], Field(min_length=1, max_length=MOST_WIDTHS), Tag("list")
    ]
    | Annotated[WidthRange, Tag("range")],
    shaped(
        "widths_type",
        "expected a number, a list of them, or a range {low: , high: , points: }",
        list=list,
        range=(dict, WidthRange),
        number=(int, float),
    ),
]


def listed_values(values: Any) -> list[Any]:
    """Those of a range or a list, or the one."""
    if isinstance(values, WeightRange | WidthRange):
        return values.build()
    return values if isinstance(values, list) else [values]

"""What all sections of a problem file have in common."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, cleandoc, signature
from math import isfinite
from types import MappingProxyType, UnionType
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
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from propopt.base.checks import read_share
from propopt.base.errors import (
    Infeasible,
    InvalidInput,
    MissingExtra,
    ProblemFileError,
    PropoptError,
    Refused,
)


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


@final
class ErrorGroup(InvalidInput):
    """Several that are found apart from each other, each with its part."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[PropoptError] = []

    def __str__(self) -> str:
        return "\n".join(map(str, self.found))

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


@contextmanager
def collect_errors() -> Iterator[ErrorGroup]:
    """What is found inside, and the last that is raised, is told at the end."""
    mistakes = ErrorGroup()
    with mistakes.noted():
        yield mistakes
    if mistakes.found:
        one, *others = mistakes.found
        raise mistakes if others else one


# ---- A section: of the settings of what takes them


class Section(BaseModel):
    """A mapping whose keys are known."""

    # what checks a section is built with the whole file's, or when it is first asked
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, frozen=True, defer_build=True
    )

    makes: ClassVar[Any] = None
    """What takes its settings, where one constructor does."""

    of_texts: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Settings without a meaning for tables, and what is said then."""
    of_tables: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Settings without a meaning for documents, and what is said then."""

    def settings(self, *others: str) -> dict[str, Any]:
        """The values of its keys, but of some others."""
        return {name: value for name, value in self if name not in others}

    def make(self, **others: Any) -> Any:
        """What takes its settings, given these and what it takes of others."""
        taken = signature(self.makes).parameters
        given = {**dict(self), **others}
        return self.makes(**{name: given[name] for name in given if name in taken})

    def conflicts(self) -> Iterable[PropoptError]:
        """What is wrong with its settings together."""
        return ()

    def check(self, data_shape: Any) -> None:
        """Refuse, before any work, what does not fit the sizes of the subject."""

    def without_effect(self, chosen: str, *names: str) -> Iterator[PropoptError]:
        """What would have no effect beside a choice is a mistake."""
        for name in sorted(self.model_fields_set.intersection(names)):
            yield wrong(f"{name} has no effect with {chosen}")

    @model_validator(mode="after")
    def _agreed(self) -> Self:
        found = [
            InitErrorDetails(type=refused(error), loc=error.part, input=self)
            for error in self.conflicts()
        ]
        if found:
            raise ValidationError.from_exception_data(type(self).__name__, found)
        return self


def refused(error: PropoptError) -> PydanticCustomError:
    """What a validator raises, with the keys and positions of a missing key."""
    told = {"told": str(error), "part": error.part}
    return PydanticCustomError("refused", "{told}", told)


def inner_sections(
    section: Section, *outer: str | int
) -> Iterator[tuple[Location, Section]]:
    """It and all sections in it, each with its location."""
    yield outer, section
    for name, value in section:
        inner: Any = [((name,), value)]
        if isinstance(value, list | Mapping):
            places = enumerate(value) if isinstance(value, list) else value.items()
            inner = [((name, place), one) for place, one in places]
        for steps, one in inner:
            if isinstance(one, Section):
                yield from inner_sections(one, *outer, *steps)


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
    docstring, or of the docstring of ``told``, and perhaps of ``also``. What is said
    besides: the kind that a file writes, what it is for, a pair of both, or both and a
    default. A setting that is not of the constructor is required.
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
        raise refused(wrong("expected 0, or a number >= 1e-100"))
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


def _read_share(share: str) -> str:
    try:
        read_share(share, "")
    except InvalidInput as error:
        raise refused(wrong(str(error).removeprefix(": "))) from None
    return share


Smaller: TypeAlias = Annotated[str, AfterValidator(_read_share)]
"""By how much a loss is to be smaller, such as -50%."""


class Interval(Section):
    """From low to high."""

    low: Finite
    high: Finite

    def conflicts(self) -> Iterator[PropoptError]:
        if not isfinite(self.high - self.low):
            yield wrong("low and high are too far apart")
        elif self.low >= self.high:
            came = f"low {self.low:g} and high {self.high:g}"
            yield wrong(f"expected low < high, got {came}")


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise unshaped("text or a number")
    return value


Label: TypeAlias = Annotated[str | int | float | bool, BeforeValidator(_scalar)]


def unshaped(expected: str) -> PydanticCustomError:
    """Of a value that is neither of what would do; what came is told, too."""
    return PydanticCustomError("shape", "{expected}", {"expected": expected})


@dataclass(frozen=True)
class Shaped:
    """Annotates a union: its first part of whose shape a value is."""

    expected: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        parts = {f"shape {number}": one for number, one in enumerate(get_args(source))}

        def shape(value: Any) -> str | None:
            fits = (tag for tag, one in parts.items() if _has_shape(value, one))
            return next(fits, None)

        tagged = tuple(Annotated[one, Tag(tag)] for tag, one in parts.items())
        union: Any = Union[tagged]  # noqa: UP007 - of a tuple
        chosen = Discriminator(
            shape,
            custom_error_type="shape",
            custom_error_message="{expected}",
            custom_error_context={"expected": self.expected},
        )
        return handler.generate_schema(Annotated[union, chosen])


def _has_shape(value: Any, kind: Any) -> bool:
    """Whether it is of a type, whatever limits that has; or one of some words."""
    if get_origin(kind) is Annotated:
        return _has_shape(value, get_args(kind)[0])
    if get_origin(kind) is Literal:
        return any(value == word for word in get_args(kind))
    plain = get_origin(kind) or kind
    if issubclass(plain, Section):
        return isinstance(value, dict | plain)
    return isinstance(value, (int, float) if plain is float else plain)


def listed_words(words: Collection[str], last_by: str = "and") -> str:
    """``a, b and c``."""
    *others, last = words
    return f"{', '.join(others)} {last_by} {last}" if others else last


# ---- Sections on what is tried: weights, limits, kernel widths


MOST_WEIGHTS: Final = 100_000
"""Of a range, and combinations of a sweep."""


class WeightRange(Interval):
    """Weights from low to high."""

    low: Nonnegative
    high: Positive
    points: Annotated[int, Field(ge=2, le=MOST_WEIGHTS)]
    scale: Literal["log", "linear"] = "log"

    def conflicts(self) -> Iterator[PropoptError]:
        yield from super().conflicts()
        if self.scale == "log" and self.low == 0:
            yield wrong("a log scale needs low > 0; or use scale: linear")


Weights: TypeAlias = Annotated[
    Annotated[list[Nonnegative], Field(min_length=1)] | WeightRange,
    Shaped("a list of weights, or a range {low: , high: , points: }"),
]

MOST_WIDTHS: Final = 1000
"""Of a list or a range."""


class WidthRange(Interval):
    """Kernel widths from low to high, at equal ratios."""

    low: Positive
    high: Positive
    points: Annotated[int, Field(ge=2, le=MOST_WIDTHS)]


KernelWidths: TypeAlias = Annotated[
    Positive
    | Annotated[list[Positive], Field(min_length=1, max_length=MOST_WIDTHS)]
    | WidthRange,
    Shaped("a number, a list of them, or a range {low: , high: , points: }"),
]


def count_values(values: Any) -> int:
    """How many there are, before any is made."""
    return len(values) if isinstance(values, list) else values.points


def listed_values(values: Any) -> list[Any]:
    """Those of a range or a list, or the one."""
    if not isinstance(values, WeightRange | WidthRange):
        return values if isinstance(values, list) else [values]
    is_linear = getattr(values, "scale", "log") == "linear"
    space = np.linspace if is_linear else np.geomspace
    return [float(v) for v in space(values.low, values.high, values.points)]

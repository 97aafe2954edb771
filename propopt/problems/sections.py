"""The base of all sections of a problem file, and types of their values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
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


# ---- Errors with the location of their key


Location: TypeAlias = tuple[str | int, ...]
"""Keys and list positions that lead to a value: ``("baselines", 0, "scale")``."""

OF_INPUT: Final = (InvalidInput, Refused, Infeasible, MissingExtra)
"""Errors of the problem, not of a solver."""


@contextmanager
def part(*location: str | int) -> Iterator[None]:
    """Prepend this location to input errors that are raised inside."""
    try:
        yield
    except OF_INPUT as error:
        error.part = (*location, *error.part)
        raise


def wrong(message: str, *location: str | int) -> InvalidInput:
    """An error with its location."""
    error = InvalidInput(message)
    error.part = location
    return error


@final
class ErrorGroup(InvalidInput):
    """Several independent errors, each with its location."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[PropoptError] = []

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))

    @contextmanager
    def noted(self, *location: str | int) -> Iterator[None]:
        """Collect an input error from inside, and continue after the block."""
        try:
            with part(*location):
                yield
        except (*OF_INPUT, ProblemFileError) as error:
            self.errors.append(error)

    def add(self, message: str, *location: str | int) -> None:
        """Collect an error with this message."""
        self.errors.append(wrong(message, *location))


@contextmanager
def collect_errors() -> Iterator[ErrorGroup]:
    """Collect errors inside the block, and raise all of them at its end."""
    group = ErrorGroup()
    with group.noted():
        yield group
    if group.errors:
        one, *others = group.errors
        raise group if others else one


# ---- Sections, with the settings of a constructor or function


class Section(BaseModel):
    """A mapping with a fixed set of keys."""

    # validators are built with that of the whole file, or on first use
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, frozen=True, defer_build=True
    )

    makes: ClassVar[Any] = None
    """The constructor or function that takes its settings."""

    of_texts: ClassVar[frozenset[str]] = frozenset()
    """Settings without effect for tables."""
    of_tables: ClassVar[frozenset[str]] = frozenset()
    """Settings without effect for documents."""

    def settings(self, *others: str) -> dict[str, Any]:
        """The values of its keys, except some."""
        return {name: value for name, value in self if name not in others}

    def make(self, **others: Any) -> Any:
        """Call the constructor with these settings, and with others that it takes."""
        taken = signature(self.makes).parameters
        given = {**dict(self), **others}
        return self.makes(**{name: given[name] for name in given if name in taken})

    def conflicts(self) -> Iterable[PropoptError]:
        """Errors of combinations of its settings."""
        return ()

    def without_effect(self, chosen: str, *names: str) -> Iterator[PropoptError]:
        """Errors of settings that have no effect with a choice."""
        for name in sorted(self.model_fields_set.intersection(names)):
            yield wrong(f"{name} has no effect with {chosen}")

    @model_validator(mode="after")
    def _agreed(self) -> Self:
        details = [
            InitErrorDetails(type=refused(error), loc=error.part, input=self)
            for error in self.conflicts()
        ]
        if details:
            raise ValidationError.from_exception_data(type(self).__name__, details)
        return self


def refused(error: PropoptError) -> PydanticCustomError:
    """The error for pydantic, with the location of a missing key."""
    context = {"told": str(error), "part": error.part}
    return PydanticCustomError("refused", "{told}", context)


def inner_sections(
    section: Section, *outer: str | int
) -> list[tuple[Location, Section]]:
    """The section and all sections inside it, each with its location."""
    sections: list[tuple[Location, Section]] = [(outer, section)]
    for name, value in section:
        if isinstance(value, Section):
            sections += inner_sections(value, *outer, name)
        elif isinstance(value, list | Mapping):
            items: Any = enumerate(value) if isinstance(value, list) else value.items()
            for key, one in items:
                if isinstance(one, Section):
                    sections += inner_sections(one, *outer, name, key)
    return sections


Made = TypeVar("Made", bound=Section)


def section_of(
    made: Any,
    base: type[Made],
    name: str = "",
    doc: str = "",
    /,
    *,
    documented_by: Any = None,
    also: Any = None,
    without: Collection[str] = (),
    **overrides: Any,
) -> type[Made]:
    """A section class with the settings of a constructor or function.

    Names, types, defaults and descriptions come from its signature and docstring, or
    from the docstring of ``documented_by``; ``also`` adds those of another function. An
    override is a type, a description, a pair of both, or both and a default. Settings
    that the constructor lacks are required.
    """
    taken = {**signature(made).parameters}
    hints = _hints(made)
    words = sentences_of(documented_by or made)
    if also is not None:
        taken = {**signature(also).parameters, **taken}
        hints = _hints(also) | hints
        words = sentences_of(also) | words
    hidden = {*without, *base.model_fields}
    settings = [x for x in taken if x in overrides or (x in hints and x not in hidden)]
    fields: Any = {}
    for setting in (*(x for x in overrides if x not in taken), *settings):
        has_default = setting in taken and taken[setting].default is not Parameter.empty
        default = taken[setting].default if has_default else ...
        kind = _written(hints.get(setting, Any))
        use = words.get(setting)
        match overrides.get(setting):
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
    """Annotations of the parameters."""
    is_plain = isinstance(made, type) and not is_dataclass(made)
    hints = get_type_hints(made.__init__ if is_plain else made, include_extras=True)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _written(hint: Any) -> Any:
    """The type of a setting in a file, with bounds on counts and scales."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return Union[tuple(map(_written, get_args(hint)))]  # noqa: UP007 - of a tuple
    return {int: Count, float: Positive}.get(hint, hint)


def sentences_of(made: Any) -> dict[str, str]:
    """The first sentence on each parameter in a numpydoc docstring."""
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
    """Annotation: one of these sections, chosen by the value of a key."""

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
"""Weights and scales with products and squares in the range of floats."""
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
MOST_NUMBERS: Final = 10_000_000
"""Upper bound of counts, and of points × dimensions of a grid."""
Count: TypeAlias = Annotated[int, Field(ge=1, le=MOST_NUMBERS)]
Seed: TypeAlias = Annotated[int, Field(ge=0, le=2**32 - 1)]


def _read_share(share: str) -> str:
    try:
        read_share(share, "")
    except InvalidInput as error:
        raise refused(wrong(str(error).removeprefix(": "))) from None
    return share


Smaller: TypeAlias = Annotated[str, AfterValidator(_read_share)]
"""The requested change of a loss, such as -50%."""


class Interval(Section):
    """An interval from low to high."""

    low: Finite
    high: Finite

    def conflicts(self) -> Iterator[PropoptError]:
        if not isfinite(self.high - self.low):
            yield wrong("low and high are too far apart")
        elif self.low >= self.high:
            got = f"low {self.low:g} and high {self.high:g}"
            yield wrong(f"expected low < high, got {got}")


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise unshaped("text or a number")
    return value


Label: TypeAlias = Annotated[str | int | float | bool, BeforeValidator(_scalar)]


def unshaped(expected: str) -> PydanticCustomError:
    """The error of a value with the wrong type; the message shows the value too."""
    return PydanticCustomError("shape", "{expected}", {"expected": expected})


@dataclass(frozen=True)
class Shaped:
    """Annotation: the first member of a union that fits the type of a value."""

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
    """Whether a value is of a type, apart from bounds, or one of some words."""
    if get_origin(kind) is Annotated:
        return _has_shape(value, get_args(kind)[0])
    if get_origin(kind) is Literal:
        return any(value == word for word in get_args(kind))
    plain = get_origin(kind) or kind
    if issubclass(plain, Section):
        return isinstance(value, dict | plain)
    return isinstance(value, (int, float) if plain is float else plain)


# ---- Lists and ranges of weights, limits and kernel widths


MOST_WEIGHTS: Final = 100_000
"""Upper bound of points of a range, and of combinations of a sweep."""


class WeightRange(Interval):
    """A range of weights from low to high."""

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
"""Upper bound of the number of kernel widths."""


class WidthRange(Interval):
    """A range of kernel widths from low to high, at equal ratios."""

    low: Positive
    high: Positive
    points: Annotated[int, Field(ge=2, le=MOST_WIDTHS)]


KernelWidths: TypeAlias = Annotated[
    Positive
    | Annotated[list[Positive], Field(min_length=1, max_length=MOST_WIDTHS)]
    | WidthRange,
    Shaped("a number, a list of them, or a range {low: , high: , points: }"),
]


def listed_values(values: Any) -> list[Any]:
    """The values of a range or list, or the single value, as a list."""
    if not isinstance(values, WeightRange | WidthRange):
        return values if isinstance(values, list) else [values]
    is_linear = getattr(values, "scale", "log") == "linear"
    space = np.linspace if is_linear else np.geomspace
    return [float(v) for v in space(values.low, values.high, values.points)]

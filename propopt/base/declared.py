"""Objects that are their fields: each is declared once, and checked, saved and loaded.

A field's annotation says what it holds, and :func:`stored` what a type cannot say: the
axes of an array, bounds, whether numbers may be missing. From both follow the check of
what is constructed, the file, and the check of what is read from a file::

    class Scores(Declared, kind="propopt scores", noun="saved scores", version=1):
        estimates: Array = stored("Q", missing=True)
        errors: Array | None = stored("Q", low=0.0, default=None)
        names: tuple[str, ...] = stored()
        model: Any = left(default=None)

A file is an archive of arrays with one JSON header and a digest of both. A digest finds
accidents: bits that flipped, a member that was exchanged. What contradicts itself is
found by :meth:`Declared.contradictions`, where a class says what follows from what.
Neither finds a consistent lie.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import reprlib
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from propopt.base.checks import as_floats, is_sealed, refuse_any, sealed
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, archive_path, as_json
from propopt.base.text import plain_name


T = TypeVar("T")


# ---- What is said of a field beside its annotation


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Bounds:
    """What numbers of a field may be."""

    axes: tuple[str, ...] | None = None  # such as ("N", "D-1"); None where any
    low: float = -math.inf
    high: float = math.inf
    missing: bool = False  # NaN is a number that is not known
    infinite: bool = False
    nonempty: bool = False
    halves: bool = False  # text may have half a surrogate pair
    by_column: bool = False  # records are saved field by field

    def of_numbers(self) -> Bounds:
        """The same for each number of a mapping or list."""
        return dataclasses.replace(self, axes=None, nonempty=False)


_SAID: Final = "propopt"
_LEFT: Final = object()


def stored(
    axes: str | None = None,  # lengths by letter or number
    *,
    default: Any = dataclasses.MISSING,  # as of dataclasses.field
    factory: Any = dataclasses.MISSING,
    low: float = -math.inf,  # least
    high: float = math.inf,  # largest number
    missing: bool = False,  # whether NaN, or an infinite number, is one too
    infinite: bool = False,
    nonempty: bool = False,  # whether a list or array has at least one item
    # whether text may have half of a surrogate pair, as what people write has
    halves: bool = False,
    by_column: bool = False,  # whether many records are saved field by field
    lazy: bool = False,  # whether the value may be Lazy, and is checked when it is read
) -> Any:
    """A field that is saved: axes of its array, and what its numbers may be."""
    said = Bounds(
        axes=None if axes is None else tuple(axes.split()),
        low=low,
        high=high,
        missing=missing,
        infinite=infinite,
        nonempty=nonempty,
        halves=halves,
        by_column=by_column,
    )
    return dataclasses.field(
        default=default,
        default_factory=factory,
        metadata={_SAID: said, "lazy": lazy},
    )


def left(*, default: Any, compare: bool = True, repr: bool = True) -> Any:
    """A field that files and pickles leave out: its default is there after loading."""
    return dataclasses.field(
        default=default, compare=compare, repr=repr, metadata={_SAID: _LEFT}
    )


# ---- Values that cost work, done when somebody first asks for them


@dataclasses.dataclass(frozen=True, eq=False)
class Lazy(Generic[T]):
    """A value that is computed when it is first read."""

    compute: Callable[[], T]

    is_pickled: ClassVar[bool] = False
    """Whether a pickle takes it as it is; others are computed for it."""


def lazily(compute: Callable[[], T]) -> T:
    """A lazy value for a field, where a type checker sees what it will be."""
    return cast("T", Lazy(compute))


@final
class _LazyField:
    """A field that may hold a :class:`Lazy` value; computed and checked when read."""

    def __init__(self, name: str, default: Any) -> None:
        self._name, self._default = name, default

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self._default
        value = vars(owner)[self._name]
        if isinstance(value, Lazy):
            owner.settle(self._name, value.compute())
            value = vars(owner)[self._name]
        return value

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)[self._name] = value


# ---- What a file holds: arrays by name, and what several parts of it have in common


@final
class Members(dict[str, Any]):
    """Arrays of a file by name, and the plain records that its parts share."""

    def __init__(
        self, arrays: Mapping[str, Any] | None = None, shared: Any = None
    ) -> None:
        super().__init__(arrays or {})
        self.shared: list[Any] = [] if shared is None else shared
        self.takes_whole = False  # earlier versions had no shared records
        self._under: dict[str, list[str]] | None = None
        self._made: dict[tuple[type, int], Any] = {}

    def under(self, name: str) -> list[str]:
        """The rest of each name that begins with this one and a dot."""
        if self._under is None:
            self._under = {}
            for key in self:
                start, dot, _ = key.partition(".")
                while dot:
                    rest = key[len(start) + 1 :]
                    self._under.setdefault(start, []).append(rest)
                    more, dot, _ = rest.partition(".")
                    start = f"{start}.{more}"
        return self._under.get(name, [])

    def place_of(self, plain: Any) -> int:
        """Where a plain record stands among the shared ones; from now on if not yet."""
        if plain not in self.shared:
            self.shared.append(plain)
        return self.shared.index(plain)

    def made_of(self, cls: type, place: object, make: Callable[[Any], Any]) -> Any:
        """The object of a shared record, made once."""
        if type(place) is not int or not 0 <= place < len(self.shared):
            raise InvalidInput(f"shared: expected a place below {len(self.shared)}")
        if (cls, place) not in self._made:
            self._made[cls, place] = make(self.shared[place])
        return self._made[cls, place]

    def refuse_rest(self) -> None:
        """Refuse arrays and records that nothing took."""
        for name in self:
            raise InvalidInput(f"it also has the array {name!r}")
        if len({place for _, place in self._made}) < len(self.shared):
            raise InvalidInput("shared: it has a record that nothing refers to")


# ---- Parts: how a value of one type is checked, made plain for a file, and read again


class FieldPart(ABC):
    """What an annotation says, as reader and writer."""

    words: str
    """What is expected, in words."""

    in_header: bool = True
    """Whether it stands in the header; else among the arrays alone."""

    @abstractmethod
    def checked(self, value: Any, name: str) -> Any:
        """The value as an object holds it, refused where it is none."""

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        """What JSON has of it; its arrays go to ``arrays``, under ``name``."""
        return value

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        """The value again; what it takes of ``arrays`` is taken out."""
        return self.checked(plain, name)

    def refusal(self, name: str, value: object) -> InvalidInput:
        """The one error of a value that is none."""
        got = reprlib.repr(value)
        return InvalidInput(f"{name}: expected {self.words}, got {got}")


@final
@dataclasses.dataclass(frozen=True)
class _Scalar(FieldPart):
    """A number, text, truth value or null, or one of several of these types."""

    types: tuple[Any, ...]  # of float, int, str, bool, None; Hashable is a name
    words_of: tuple[Any, ...]  # of a Literal
    bounds: Bounds

    @property
    def words(self) -> str:  # type: ignore[override]
        return _either([*map(repr, self.words_of), *self._kinds()])

    def _kinds(self) -> list[str]:
        known = {
            float: f"a {'' if self.bounds.infinite else 'finite '}number{self._range}",
            int: f"an integer{self._range}",
            str: "text",
            bool: "true or false",
            Hashable: "text or a number",
            type(None): "null",
        }
        numbers = [] if not self.bounds.missing else ["null"]
        return [*(known[kind] for kind in self.types), *numbers]

    @property
    def _range(self) -> str:
        low, high = self.bounds.low, self.bounds.high
        if math.isfinite(low) and math.isfinite(high):
            return f" from {low:g} to {high:g}"
        return f" >= {low:g}" if math.isfinite(low) else ""

    def checked(self, value: Any, name: str) -> Any:
        own = value.item() if isinstance(value, np.generic) else value
        if any(self._is(kind, own) for kind in self.types):
            return own
        if isinstance(own, str) and own in self.words_of:
            return own
        raise self.refusal(name, value)

    def _is(self, kind: Any, value: Any) -> bool:
        match value:
            case None | bool():
                return kind is type(value)
            case str():
                return kind in (str, Hashable) and (
                    self.bounds.halves or is_text(value)
                )
            case int():
                return kind in (int, float, Hashable) and self._fits(value)
            case float():
                return kind in (float, Hashable) and self._fits(value)
        return False

    @property
    def _may_miss(self) -> bool:
        known = self.bounds.missing or Hashable in self.types
        return known and type(None) not in self.types

    def _fits(self, value: float) -> bool:
        if value != value:
            return self._may_miss or self.bounds.missing
        if abs(value) > sys.float_info.max:
            endless = self.bounds.infinite or Hashable in self.types
            known = endless and isinstance(value, float)  # no table has such integers
            return known and self.bounds.low <= value <= self.bounds.high
        return self.bounds.low <= value <= self.bounds.high

    def _is_plain(self, value: Any) -> bool:
        """Whether it is sure to be one, at a glance: there may be many."""
        if type(value) is str:
            return str in self.types and is_text(value)
        within = type(value) is float and abs(value) <= sys.float_info.max
        return within and float in self.types and self._fits(value)

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        if self._is_plain(value):
            return value
        if value is None and type(None) in self.types:
            return None
        if Hashable in self.types:
            value = plain_name(value)
        if isinstance(value, str) and _PAIR.search(value):
            raise InvalidInput(
                f"{name}: two halves of characters stand side by side in it"
            )
        if isinstance(value, float | np.floating) and not math.isfinite(value):
            if math.isnan(value) and type(None) in self.types:
                self.checked(value, name)  # where null is None, NaN is not to be it
            return None if math.isnan(value) else str(float(value))
        if Hashable in self.types and not any(self._is(k, value) for k in self.types):
            return str(value)  # names of any type
        return value

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        if self._is_plain(plain) and not (self.bounds.infinite and plain in _INFINITE):
            return plain
        if plain is None and self._may_miss:
            return math.nan  # one NaN, which is itself
        if self.bounds.infinite and isinstance(plain, str) and plain in _INFINITE:
            plain = float(plain)
        return self.checked(plain, name)


_INFINITE: Final = ("inf", "-inf")

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""What JSON reads back as one character."""


@final
@dataclasses.dataclass(frozen=True)
class _Many(FieldPart):
    """A tuple of parts of one kind, of any length or of a fixed one."""

    part: FieldPart
    length: int | None
    bounds: Bounds

    @property
    def words(self) -> str:  # type: ignore[override]
        some = "a list" if self.length is None else f"a list of {self.length}"
        return f"{some}, each {self.part.words}"

    @property
    def in_header(self) -> bool:  # type: ignore[override]
        return self.part.in_header

    def checked(self, value: Any, name: str) -> Any:
        if not isinstance(value, list | tuple) or not self._long_enough(len(value)):
            raise self.refusal(name, value)
        return tuple(self.part.checked(x, f"{name}[{k}]") for k, x in enumerate(value))

    def _long_enough(self, count: int) -> bool:
        return count == self.length or (
            self.length is None and (count > 0 or not self.bounds.nonempty)
        )

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        if self.in_header:
            return [
                self.part.packed(x, f"{name}.{k}", arrays) for k, x in enumerate(value)
            ]
        # arrays of several lengths: one behind the other, and their lengths
        known = [x for x in value if x is not None]
        sizes = [-1 if x is None else len(x) for x in value]
        arrays[name] = np.concatenate([*known, np.empty(0, self._numbers.dtype)])
        arrays[f"{name}.sizes"] = np.array(sizes, dtype=np.int64)
        return None

    @property
    def _numbers(self) -> _Numbers:
        """Of what the arrays are; -1 is the length of one that is not there."""
        part = self.part.part if isinstance(self.part, _Maybe) else self.part
        assert isinstance(part, _Numbers), "arrays alone are not in the header"
        return part

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        if self.in_header:
            if not isinstance(plain, list) or not self._long_enough(len(plain)):
                raise self.refusal(name, plain)
            return tuple(
                self.part.unpacked(x, f"{name}.{k}", arrays)
                for k, x in enumerate(plain)
            )
        sizes = _member(arrays, f"{name}.sizes")
        whole = self._numbers.unpacked(None, name, arrays)
        least = -1 if isinstance(self.part, _Maybe) else 0
        if sizes.dtype != np.int64 or sizes.ndim != 1 or (sizes < least).any():
            raise InvalidInput(f"{name}.sizes: expected integers >= {least}")
        lengths = np.maximum(sizes, 0)
        if whole.ndim != 1 or int(lengths.sum()) != len(whole):
            raise InvalidInput(f"{name}: expected as many numbers as its sizes say")
        pieces = np.split(whole, np.cumsum(lengths)[:-1]) if len(sizes) else []
        there = [p if n >= 0 else None for p, n in zip(pieces, sizes, strict=True)]
        return self.checked(tuple(there), name)


@final
@dataclasses.dataclass(frozen=True)
class _Named(FieldPart):
    """A mapping from text to parts of one kind."""

    part: FieldPart

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"by name {self.part.words}"

    @property
    def in_header(self) -> bool:  # type: ignore[override]
        return self.part.in_header

    def checked(self, value: Any, name: str) -> Any:
        if not isinstance(value, Mapping) or not all(map(is_text, value)):
            raise self.refusal(name, value)
        own = {k: self.part.checked(x, f"{name}.{k}") for k, x in value.items()}
        return value if all(own[k] is value[k] for k in own) else own

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        return {k: self.part.packed(x, f"{name}.{k}", arrays) for k, x in value.items()}

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        if not self.in_header:
            plain = dict.fromkeys(arrays.under(name))
        if not isinstance(plain, dict) or not all(map(is_text, plain)):
            raise self.refusal(name, plain)
        return {
            k: self.part.unpacked(x, f"{name}.{k}", arrays) for k, x in plain.items()
        }


@final
@dataclasses.dataclass(frozen=True)
class _Numbers(FieldPart):
    """An array of numbers of one type; its own where somebody could write to it."""

    dtype: Any  # None: any numbers
    bounds: Bounds
    in_header = False

    @property
    def words(self) -> str:  # type: ignore[override]
        kinds = {"f": "numbers", "i": "integers", "u": "integers", "b": "truth values"}
        kind = "numbers" if self.dtype is None else kinds[np.dtype(self.dtype).kind]
        axes = self.bounds.axes
        return kind if axes is None else f"{kind} of shape ({', '.join(axes)})"

    def checked(self, value: Any, name: str) -> Any:
        if is_sealed(value) and (self.dtype is None or value.dtype == self.dtype):
            return self._of_axes(value, name)  # looked at before, or on loading
        if self.dtype is np.float64:
            return self._looked_at(sealed(as_floats(value, name)), name)
        array = np.array(value)
        if self.dtype is None:  # what is no number is refused where it is saved
            return sealed(array)
        if array.dtype.kind not in "fiub":
            raise InvalidInput(f"{name}: expected {self.words}, got {array.dtype}")
        own = array.astype(self.dtype)
        if not (own == array).all():
            raise self.refusal(name, value)
        return self._looked_at(sealed(own), name)

    def _of_axes(self, array: Any, name: str) -> Any:
        axes = self.bounds.axes
        if axes is not None and array.ndim != len(axes):
            raise InvalidInput(
                f"{name}: expected {len(axes)} dimensions, got an array of shape "
                f"{array.shape}"
            )
        return array

    def _looked_at(self, array: Any, name: str) -> Any:
        bounds = self.bounds
        self._of_axes(array, name)
        if bounds.nonempty and array.size == 0:
            raise InvalidInput(f"{name}: the array is empty, of shape {array.shape}")
        if self.dtype is None or array.dtype.kind == "b":
            return array
        refused = np.zeros(array.shape, dtype=bool)
        if array.dtype.kind == "f" and not bounds.missing:
            refused |= np.isnan(array)
        if array.dtype.kind == "f" and not bounds.infinite:
            refused |= np.isinf(array)
        refuse_any(refused, array, name, "not finite")
        outside = (array < bounds.low) | (array > bounds.high)
        if outside.any():
            raise InvalidInput(
                f"{name}: expected numbers {_range_in_words(bounds)}, got "
                f"{array[outside][0].item()!r}"
            )
        return array

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        arrays[name] = value
        return None

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        array = _member(arrays, name)
        wanted = "fiub" if self.dtype is None else np.dtype(self.dtype).kind
        if array.dtype.kind not in wanted or self.dtype not in (None, array.dtype):
            raise InvalidInput(f"{name}: expected {self.words}, got {array.dtype}")
        return self._looked_at(sealed(array), name)


@final
@dataclasses.dataclass(frozen=True)
class _Maybe(FieldPart):
    """A part, or None."""

    part: FieldPart

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"{self.part.words}, or null"

    @property
    def in_header(self) -> bool:  # type: ignore[override]
        return self.part.in_header

    def checked(self, value: Any, name: str) -> Any:
        return None if value is None else self.part.checked(value, name)

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        return None if value is None else self.part.packed(value, name, arrays)

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        there = plain is not None if self.in_header else name in arrays
        return self.part.unpacked(plain, name, arrays) if there else None


@final
@dataclasses.dataclass(frozen=True)
class _Record(FieldPart):
    """An object that is its fields."""

    cls: type

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"the fields of {self.cls.__name__}"

    def checked(self, value: Any, name: str) -> Any:
        if not isinstance(value, self.cls):
            raise self.refusal(name, value)
        return value

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        inside, plain = f"{name}." if name else "", {}
        for key, part in parts_of(self.cls).items():
            own = part.packed(getattr(value, key), inside + key, arrays)
            if part.in_header:
                plain[key] = own
        return arrays.place_of(plain) if self.is_shared else plain

    @property
    def is_shared(self) -> bool:
        """Whether equal ones stand in a file once, as names of rows and columns do."""
        return bool(getattr(self.cls, "shared_in_files", False))

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        if self.is_shared and not (arrays.takes_whole and isinstance(plain, dict)):
            return arrays.made_of(
                self.cls, plain, lambda own: self._made(own, name, arrays)
            )
        return self._made(plain, name, arrays)

    def _made(self, plain: Any, name: str, arrays: Members) -> Any:
        if not isinstance(plain, dict):
            raise self.refusal(name, plain)
        inside, parts = f"{name}." if name else "", parts_of(self.cls)
        if plain.keys() != (known := _keys_of(self.cls)):
            key = min(plain.keys() ^ known)
            has = "no" if key in known else "also"
            raise InvalidInput(f"its header has {has} {inside}{key}")
        fields = {
            key: part.unpacked(plain.get(key), inside + key, arrays)
            for key, part in parts.items()
        }
        try:
            made = self.cls(**fields)
            if name and isinstance(made, Declared):
                made.contradictions()
        except InvalidInput as error:
            raise InvalidInput(f"{name}: {error}" if name else str(error)) from None
        return made


@final
@dataclasses.dataclass(frozen=True)
class _OwnWay(FieldPart):
    """An object that says itself how it stands in a file, as schemas of tables do."""

    cls: Any  # with packed_into(arrays), and unpacked_from(plain, arrays) of the class

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"what makes a {self.cls.__name__}"

    def checked(self, value: Any, name: str) -> Any:
        if not isinstance(value, self.cls):
            raise self.refusal(name, value)
        return value

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        own: dict[str, Any] = {}
        plain = value.packed_into(own)
        arrays.update({f"{name}.{key}": array for key, array in own.items()})
        return plain

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        if not isinstance(plain, dict):
            raise self.refusal(name, plain)
        inside = {key: arrays.pop(f"{name}.{key}") for key in arrays.under(name)}
        return self.cls.unpacked_from(plain, inside)


@final
@dataclasses.dataclass(frozen=True)
class _Columns(FieldPart):
    """A tuple of records of one kind, saved field by field."""

    cls: type
    bounds: Bounds

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"a list of the fields of {self.cls.__name__}"

    def checked(self, value: Any, name: str) -> Any:
        if not isinstance(value, list | tuple) or not all(
            isinstance(x, self.cls) for x in value
        ):
            raise self.refusal(name, value)
        return tuple(value)

    def _parts(self) -> dict[str, FieldPart]:
        return {
            key: _Columns(part.cls, Bounds())
            if isinstance(part, _Record)
            else _Many(part, None, Bounds())
            for key, part in parts_of(self.cls).items()
        }

    def packed(self, value: Any, name: str, arrays: Members) -> Any:
        plain = {}
        for key, part in self._parts().items():
            column = [getattr(x, key) for x in value]
            own = part.packed(column, f"{name}.{key}", arrays)
            if part.in_header:
                plain[key] = own
        return plain

    def unpacked(self, plain: Any, name: str, arrays: Members) -> Any:
        parts = self._parts()
        known = {key for key, part in parts.items() if part.in_header}
        if not isinstance(plain, dict) or plain.keys() != known:
            raise self.refusal(name, plain)
        fields = {
            key: part.unpacked(plain.get(key), f"{name}.{key}", arrays)
            for key, part in parts.items()
        }
        lengths = {len(column) for column in fields.values()}
        if len(lengths) > 1 or (self.bounds.nonempty and lengths == {0}):
            raise InvalidInput(
                f"{name}: expected as many of each field, got {sorted(lengths)}"
            )
        return tuple(
            self.cls(**dict(zip(fields, own, strict=True)))
            for own in zip(*fields.values(), strict=True)
        )


def is_text(value: object) -> bool:
    """True for text that can be written; half a surrogate pair cannot."""
    return isinstance(value, str) and (value.isascii() or not _HALF.search(value))


_HALF: Final = re.compile("[\ud800-\udfff]")


def _either(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _range_in_words(bounds: Bounds) -> str:
    if math.isfinite(bounds.low) and math.isfinite(bounds.high):
        return f"from {bounds.low:g} to {bounds.high:g}"
    if math.isfinite(bounds.low):
        return f">= {bounds.low:g}"
    return f"<= {bounds.high:g}"


def _member(arrays: dict[str, Any], name: str) -> Any:
    if name not in arrays:
        raise InvalidInput(f"it has no {name}")
    return arrays.pop(name)


# ---- From annotations to parts, once for each class


def parts_of(cls: Any) -> Mapping[str, FieldPart]:
    """How each field of a dataclass is read, those that are left out excepted."""
    if cls not in _PARTS:
        _PARTS[cls] = _compiled(cls)
    return _PARTS[cls]


_PARTS: Final[dict[Any, Mapping[str, FieldPart]]] = {}


def _keys_of(cls: Any) -> Set[str]:
    """Those fields that stand in a header."""
    if cls not in _KEYS:
        parts = parts_of(cls).items()
        _KEYS[cls] = frozenset(key for key, part in parts if part.in_header)
    return _KEYS[cls]


_KEYS: Final[dict[Any, Set[str]]] = {}


def _compiled(cls: Any) -> Mapping[str, FieldPart]:
    hints = get_type_hints(cls)
    parts = {}
    for field in dataclasses.fields(cls):
        said = field.metadata.get(_SAID, Bounds())
        if said is not _LEFT and field.init:
            parts[field.name] = part_of(hints[field.name], said)
    return parts


def part_of(hint: Any, bounds: Bounds) -> FieldPart:
    """How a value of one type is read.

    Examples
    --------
    >>> part_of(float | None, Bounds(low=0.0)).words
    'a finite number >= 0 or null'
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin is not None and hasattr(origin, "__value__"):  # NDArray of newer NumPy
        return part_of(origin.__value__[inside], bounds)
    if origin in (Union, types.UnionType):
        return _part_of_union(inside, bounds)
    if hint in _SCALARS:
        return _Scalar((hint,), (), bounds)
    if origin is Literal:
        return _Scalar((), inside, bounds)
    if origin is tuple:
        length = None if inside[-1] is Ellipsis else len(inside)
        part = part_of(inside[0], bounds.of_numbers())
        if bounds.by_column and isinstance(part, _Record):
            return _Columns(part.cls, bounds)
        return _Many(part, length, bounds)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Named(part_of(inside[1], bounds.of_numbers()))
    if origin is np.ndarray:
        (kind,) = get_args(inside[1])
        return _Numbers(None if kind is Any else kind, bounds)
    if isinstance(hint, type) and hasattr(hint, "unpacked_from"):
        return _OwnWay(hint)
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return _Scalar((), (), bounds)  # a number of NumPy becomes one of Python
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _Record(hint)
    raise TypeError(f"no file has a field of type {hint!r}")


_SCALARS: Final = (float, int, str, bool, type(None), Hashable)


def _part_of_union(hints: tuple[Any, ...], bounds: Bounds) -> FieldPart:
    """Of several scalars, or of one thing and None."""
    parts = [part_of(hint, bounds) for hint in hints]
    if all(isinstance(part, _Scalar) for part in parts):
        kinds = tuple(kind for part in parts for kind in part.types)  # type: ignore[attr-defined]
        texts = tuple(word for part in parts for word in part.words_of)  # type: ignore[attr-defined]
        return _Scalar(kinds, texts, bounds)
    (one,) = [hint for hint in hints if hint is not type(None)]
    return _Maybe(part_of(one, bounds))


_Axes: TypeAlias = tuple[tuple[str, FieldPart, tuple[str, ...] | None], ...]


def _arrays_of(cls: Any) -> _Axes:
    """Fields that hold arrays, with their axes: what a constructor looks at."""
    if cls not in _ARRAYS:
        _ARRAYS[cls] = _with_axes(cls)
    return _ARRAYS[cls]


_ARRAYS: Final[dict[Any, _Axes]] = {}


def _with_axes(cls: Any) -> _Axes:
    result = []
    for name, part in parts_of(cls).items():
        inner = part.part if isinstance(part, _Maybe) else part
        if not part.in_header:
            axes = inner.bounds.axes if isinstance(inner, _Numbers) else None
            result.append((name, part, axes))
    return tuple(result)


# ---- What is declared


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(stored, left),
)
class Declared:
    """An object that is its fields; a subclass is a frozen dataclass of keywords.

    Arrays are made read-only, and copied where somebody could write to them. Axes of
    one letter have one length.
    """

    # what its files are called, and their version; None for parts of other objects
    form: ClassVar[Format | None] = None
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(
        cls, *, kind: str = "", noun: str = "", version: int = 1, eq: bool = False
    ) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(frozen=True, kw_only=True, eq=eq, repr=False)(cls)
        if kind:
            cls.form = Format(kind, noun or f"a {kind}", version)
        for field in dataclasses.fields(cls):
            if field.metadata.get("lazy"):
                setattr(cls, field.name, _LazyField(field.name, field.default))

    def __post_init__(self) -> None:
        fields = vars(self)
        for name, part, _ in _arrays_of(type(self)):
            if not isinstance(fields[name], Lazy):
                fields[name] = part.checked(fields[name], name)
        self._check_axes()

    def settle(self, name: str, value: Any) -> None:
        """Put a lazy field's value in its place, checked."""
        vars(self)[name] = parts_of(type(self))[name].checked(value, name)
        self._check_axes()

    @property
    def lengths(self) -> dict[str, int]:
        """The length of each axis by its letter, as far as arrays are known."""
        sizes: dict[str, int] = {}
        for name, _, axes in _arrays_of(type(self)):
            shape = getattr(vars(self)[name], "shape", None)  # of a lazy one too
            if axes is not None and shape is not None:
                for axis, length in zip(axes, shape, strict=True):
                    if axis.isalpha():
                        sizes.setdefault(axis, length)
        return sizes

    def _check_axes(self) -> None:
        sizes = self.lengths
        for name, _, axes in _arrays_of(type(self)):
            array = vars(self)[name]
            if axes is None or not isinstance(array, np.ndarray):
                continue
            expected = tuple(_length(axis, sizes) for axis in axes)
            if array.shape != expected:
                raise InvalidInput(
                    f"{name}: expected shape {expected}, got {array.shape}"
                )

    def __getstate__(self) -> dict[str, Any]:
        for name, value in list(vars(self).items()):
            if isinstance(value, Lazy) and not value.is_pickled:
                getattr(self, name)
        lost = {
            field.name: field.default
            for field in dataclasses.fields(self)
            if field.metadata.get(_SAID) is _LEFT
        }
        return {**vars(self), **lost}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for name, *_ in _arrays_of(type(self)):  # a pickle's can be written to
            for array in _inside(state[name]):
                array.setflags(write=False)

    # ---- files

    def contradictions(self) -> None:
        """Refuse fields of which one says something else than another."""

    @classmethod
    def upgraded(
        cls, version: int, header: dict[str, Any], arrays: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Header and arrays of an earlier version as this version has them.

        By default what it had not is null, where that is the default.
        """
        del version
        parts = parts_of(cls).items()
        own = {f.name for f in dataclasses.fields(cls) if f.default is None}
        lacking = [name for name, part in parts if name in own and part.in_header]
        return {**dict.fromkeys(lacking), **header}, arrays

    @classmethod
    def _upgraded(
        cls, version: int, header: dict[str, Any], arrays: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            return cls.upgraded(version, header, arrays)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            told = isinstance(error, InvalidInput)
            reason = str(error) if told else "its header lacks what that had"
            raise InvalidInput(f"as a file of version {version}: {reason}") from None

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file: arrays, one JSON header, a digest; no pickles."""
        form, target = _form_of(type(self)), archive_path(path)
        arrays, whole = Members(), _Record(type(self))
        try:
            settled(self)
            plain = whole.packed(self, "", arrays)
            if arrays.shared:
                plain["shared"] = arrays.shared
            plain = json.loads(as_json(plain))
            again = Members(arrays, plain.pop("shared", None))
            whole.unpacked(plain, "", again).contradictions()
        except (TypeError, ValueError, RecursionError) as error:
            raise form.unsavable(target, error) from None
        plain = {**plain, "shared": again.shared} if again.shared else plain
        form.write(target, {**plain, "digest": digest_of(plain, arrays)}, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        made = cls.read(path)
        try:
            made.contradictions()
        except InvalidInput as error:
            raise _form_of(cls).refusal(archive_path(path), str(error)) from None
        return made

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The same, though its fields may contradict each other."""
        form, source = _form_of(cls), archive_path(path)
        version, header, members = form.read(source)
        try:
            told = header.pop("digest", None)
            now = version == form.version  # before there may have been none
            if (now or told is not None) and told != digest_of(header, members):
                raise InvalidInput("its digest is not that of what it holds")
            if not now:
                header, members = cls._upgraded(version, header, members)
            has_shared, shared = "shared" in header, header.pop("shared", None)
            if has_shared and not (isinstance(shared, list) and shared):
                raise InvalidInput("shared: expected a list of records")
            arrays = Members(members, shared)
            arrays.takes_whole = not now
            made: Self = _Record(cls).unpacked(header, "", arrays)
            arrays.refuse_rest()
        except (InvalidInput, RecursionError) as error:
            raise form.refusal(source, str(error)) from None
        return made


def digest_of(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """SHA-256 of a header and arrays: of names, types, shapes and bytes, in order.

    Examples
    --------
    >>> digest_of({"a": 1}, {})[:12]
    'f9d86028c6e0'
    """
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        said = f"\n{name} {array.dtype.str} {array.shape}\n"
        digest.update(said.encode("utf-8", "surrogatepass"))
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def settled(owner: Any) -> dict[str, Any]:
    """The fields of an object, none of them to be computed any more."""
    for name, value in list(vars(owner).items()):
        if isinstance(value, Lazy):
            getattr(owner, name)
    return vars(owner)


def _form_of(cls: type[Declared]) -> Format:
    assert cls.form is not None, f"{cls.__name__} is part of other objects"
    return cls.form


def _length(axis: str, sizes: Mapping[str, int]) -> int:
    """Of ``"N"``, ``"D-1"`` (at least zero) or ``"2"``."""
    if axis.isdigit():
        return int(axis)
    letter, _, less = axis.partition("-")
    return max(sizes.get(letter, 0) - int(less or 0), 0)


def _inside(value: Any) -> list[Any]:
    """The arrays of a field: one, several, or by name."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, Mapping):
        value = tuple(value.values())
    items = value if isinstance(value, tuple) else ()
    return [x for x in items if isinstance(x, np.ndarray)]

"""Objects that are their fields: each is declared once, and checked, saved and loaded.

A field's annotation says what it holds, and :func:`field` what a type cannot say: the
axes of an array, bounds, whether numbers may be missing. From both follow the check of
what is constructed, the file, and the check of what is read from a file::

    class Scores(Declared, kind="propopt scores", noun="saved scores", version=1):
        estimates: Array = field("Q", missing=True)
        errors: Array | None = field("Q", low=0.0, default=None)
        names: tuple[str, ...] = field()
        model: Any = transient(default=None)

A file is an archive of arrays with one JSON header and a digest of both. A digest finds
accidents: bits that flipped, a member that was exchanged. What contradicts itself is
found by :meth:`Declared.validate`, where a class says what follows from what.
Neither finds a consistent lie.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
import re
import reprlib
import sys
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from functools import cache
from operator import is_
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Self,
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

from propopt.base.checks import as_floats, is_read_only, read_only, refuse_any
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, archive_path, as_json
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import enumerated, plain_name, printable


T = TypeVar("T")


def _once(compiled: T) -> T:
    """A function of a class that is called once for each."""
    return cast("T", cache(cast("Any", compiled)))


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
    nonempty: bool = False  # a list or array has at least one item
    halves: bool = False  # text may have half a surrogate pair, as people write it
    by_column: bool = False  # records are saved field by field


_SAID: Final = "propopt"
_LEFT: Final = object()


def field(
    axes: str | None = None,
    *,
    default: Any = dataclasses.MISSING,
    factory: Any = dataclasses.MISSING,
    lazy: bool = False,
    **bounds: Any,
) -> Any:
    """A field that is saved: axes of its array, and what its numbers may be.

    Axes are lengths by letter or number, and all else is as in :class:`Bounds`. A lazy
    field may hold a :class:`Lazy` value, which is checked when it is read.
    """
    said = Bounds(axes=None if axes is None else tuple(axes.split()), **bounds)
    return dataclasses.field(
        default=default, default_factory=factory, metadata={_SAID: said, "lazy": lazy}
    )


def transient(
    *, default: Any, compare: bool = True, repr: bool = True, lazy: bool = False
) -> Any:
    """A field that files leave out: its default is there after loading.

    Copies share its value. Pickles take it where pickle can hold it. A lazy field may
    hold a :class:`Lazy` value.
    """
    metadata = {_SAID: _LEFT, "lazy": lazy}
    return dataclasses.field(
        default=default, compare=compare, repr=repr, metadata=metadata
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
        value = owner.__dict__[self._name]
        if isinstance(value, Lazy):
            owner.resolve(self._name, value.compute())
            value = vars(owner)[self._name]
        return value

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__[self._name] = value


# ---- What a file holds: arrays by name, and what several parts of it have in common


@final
class Members(dict[str, Any]):
    """Arrays of a file by name, and the plain records that its parts share."""

    def __init__(
        self, arrays: Mapping[str, Any] | None = None, shared: Any = None
    ) -> None:
        super().__init__(arrays or {})
        self.shared: list[Any] = [] if shared is None else shared
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


def _as_it_is(value: Any, *_: object) -> Any:
    return value


@final
@dataclasses.dataclass(frozen=True, eq=False)
class FieldPart:
    """What an annotation says, as reader and writer: compiled once for each class."""

    words: str  # what is expected
    # from plain, name and arrays, the value; what it takes of arrays is taken out
    unpacked: Callable[[Any, str, Members], Any]
    # from value, name and arrays, what JSON has of it; its arrays go to arrays, by name
    packed: Callable[[Any, str, Members], Any] = _as_it_is
    # from value and name, an array or record as an object holds it; refused if none
    checked: Callable[[Any, str], Any] = _as_it_is
    in_header: bool = True  # else it stands among the arrays alone
    axes: tuple[str, ...] | None = None  # of an array
    record: Any = None  # the class of a record
    there: FieldPart | None = None  # of what may be None: what it is otherwise


def _refusal(name: str, words: str, value: object) -> InvalidInput:
    """The one error of a value that is none."""
    return InvalidInput(f"{name}: expected {words}, got {reprlib.repr(value)}")


_LARGEST: Final = sys.float_info.max


def _scalar(of: Sequence[Any], bounds: Bounds) -> FieldPart:
    """A number, text, truth value or null, or one of several types and words."""
    named, null = Hashable in of, type(None) in of
    kinds = {x for x in of if x in _SCALARS} | ({float, int, str} if named else set())
    kinds |= {int} if float in kinds else set()
    low, high = bounds.low, bounds.high
    least, most = max(low, -_LARGEST), min(high, _LARGEST)
    endless = bounds.infinite or named
    unknown = bounds.missing or (named and not null)
    known = [*(_in_words(x, bounds) for x in of), *(["null"] if bounds.missing else [])]
    words = enumerated(list(dict.fromkeys(known)), "or")

    def unpacked(plain: Any, name: str, arrays: Members) -> Any:
        kind = type(plain)
        if kind is float or kind is int:
            # no table has integers beyond all floats
            if kind in kinds and (
                least <= plain <= most
                or (kind is float and endless and low <= plain <= high)
                or (plain != plain and unknown)
            ):
                return plain
        elif kind is str:
            if bounds.infinite and plain in _INFINITE:
                return unpacked(float(plain), name, arrays)
            if plain in of or (str in kinds and (bounds.halves or is_text(plain))):
                return plain
        elif kind in kinds:
            return plain
        elif plain is None and unknown:
            return math.nan  # one NaN, which is itself
        raise _refusal(name, words, plain)

    def packed(value: Any, name: str, _: Members) -> Any:
        if value is None and null:
            return None
        if named:
            value = plain_name(value)
        if isinstance(value, str):
            if not value.isascii() and _PAIR.search(value):
                raise InvalidInput(
                    f"{name}: two halves of characters stand side by side in it"
                )
        elif isinstance(value, float | np.floating) and not math.isfinite(value):
            if math.isnan(value) and null and not bounds.missing:
                raise _refusal(name, words, value)  # where null is None
            return None if math.isnan(value) else str(float(value))
        elif named and not abs(value) <= _LARGEST:
            return str(value)
        return value

    return FieldPart(words, unpacked, packed)


_INFINITE: Final = ("inf", "-inf")

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""What JSON reads back as one character."""


def _in_words(one: Any, bounds: Bounds) -> str:
    """What is expected where a scalar is of one type, or one word."""
    within = f" {_range_in_words(bounds)}".rstrip()
    words = {
        float: f"a {'' if bounds.infinite else 'finite '}number{within}",
        int: f"an integer{within}",
        str: "text",
        bool: "true or false",
        Hashable: "text or a number",
        type(None): "null",
    }
    return words.get(one) or repr(one)


def _many(part: FieldPart, length: int | None, bounds: Bounds) -> FieldPart:
    """A tuple of parts of one kind, of any length or of a fixed one."""
    some = "a list" if length is None else f"a list of {length}"
    words, least = f"{some}, each {part.words}", int(bounds.nonempty)

    def refuse(value: Any, name: str, kinds: Any) -> None:
        if not isinstance(value, kinds) or (
            len(value) < least if length is None else len(value) != length
        ):
            raise _refusal(name, words, value)

    def checked(value: Any, name: str) -> Any:
        refuse(value, name, (list, tuple))
        return tuple(part.checked(x, f"{name}[{k}]") for k, x in enumerate(value))

    def packed(value: Any, name: str, arrays: Members) -> Any:
        return [part.packed(x, f"{name}.{k}", arrays) for k, x in enumerate(value)]

    def unpacked(plain: Any, name: str, arrays: Members) -> Any:
        refuse(plain, name, list)
        own = part.unpacked
        return tuple([own(x, f"{name}.{k}", arrays) for k, x in enumerate(plain)])

    many = FieldPart(words, unpacked, packed, checked)
    return many if part.in_header else _ragged(part, many)


def _ragged(part: FieldPart, many: FieldPart) -> FieldPart:
    """Arrays of several lengths, one behind the other; −1 is the length of None."""
    numbers, least = part.there or part, -1 if part.there else 0

    def packed(value: Any, name: str, arrays: Members) -> Any:
        known = [x for x in value if x is not None]
        sizes = [-1 if x is None else len(x) for x in value]
        arrays[name] = np.concatenate([*known, numbers.checked([], name)])
        arrays[f"{name}.sizes"] = np.array(sizes, dtype=np.int64)

    def unpacked(_: Any, name: str, arrays: Members) -> Any:
        sizes = _member(arrays, f"{name}.sizes")
        whole = numbers.unpacked(None, name, arrays)
        if sizes.dtype != np.int64 or sizes.ndim != 1 or (sizes < least).any():
            raise InvalidInput(f"{name}.sizes: expected integers >= {least}")
        lengths = np.maximum(sizes, 0)
        if whole.ndim != 1 or int(lengths.sum()) != len(whole):
            raise InvalidInput(f"{name}: expected as many numbers as its sizes say")
        pieces = np.split(whole, np.cumsum(lengths)[:-1]) if len(sizes) else []
        there = [p if n >= 0 else None for p, n in zip(pieces, sizes, strict=True)]
        return many.checked(tuple(there), name)

    return FieldPart(many.words, unpacked, packed, many.checked, in_header=False)


def _named(part: FieldPart) -> FieldPart:
    """A mapping from text to parts of one kind."""
    words, in_header = f"by name {part.words}", part.in_header

    def checked(value: Any, name: str) -> Any:
        if type(value) is dict and not value:
            return value
        if not isinstance(value, Mapping) or not all(map(is_text, value)):
            raise _refusal(name, words, value)
        own = {k: part.checked(x, f"{name}.{k}") for k, x in value.items()}
        return value if all(map(is_, own.values(), value.values())) else own

    def packed(value: Any, name: str, arrays: Members) -> Any:
        return {k: part.packed(x, f"{name}.{k}", arrays) for k, x in value.items()}

    def unpacked(plain: Any, name: str, arrays: Members) -> Any:
        if not in_header:
            plain = dict.fromkeys(arrays.under(name))
        if not isinstance(plain, dict) or not all(map(is_text, plain)):
            raise _refusal(name, words, plain)
        own = part.unpacked
        return {k: own(x, f"{name}.{k}", arrays) for k, x in plain.items()}

    return FieldPart(words, unpacked, packed, checked, in_header)


def _numbers(kind: Any, bounds: Bounds) -> FieldPart:
    """An array of numbers of one type, or any; copied where somebody could write."""
    dtype, axes = None if kind is Any else np.dtype(kind), bounds.axes
    noun = _NOUNS["f" if dtype is None else dtype.kind]
    words = noun if axes is None else f"{noun} of shape ({', '.join(axes)})"

    def checked(value: Any, name: str) -> Any:
        if is_read_only(value) and (dtype is None or value.dtype == dtype):
            refuse_other_axes(value, name)
            return value  # looked at before, or on loading
        if dtype == np.float64:
            return looked_at(as_floats(value, name), name)
        array = np.array(value)
        if dtype is None:  # what is no number is refused where it is saved
            return read_only(array)
        if array.dtype.kind not in "fiub":
            raise InvalidInput(f"{name}: expected {words}, got {array.dtype}")
        own = array.astype(dtype)
        if not (own == array).all():
            raise _refusal(name, words, value)
        return looked_at(own, name)

    def refuse_other_axes(array: Any, name: str) -> None:
        if axes is not None and array.ndim != len(axes):
            raise InvalidInput(
                f"{name}: expected {len(axes)} dimensions, got an array of shape "
                f"{array.shape}"
            )

    def looked_at(array: Any, name: str) -> Any:
        refuse_other_axes(array, name)
        if bounds.nonempty and array.size == 0:
            raise InvalidInput(f"{name}: the array is empty, of shape {array.shape}")
        if dtype is not None and dtype.kind != "b":
            _refuse_outside(array, name, bounds)
        return read_only(array)

    def packed(value: Any, name: str, arrays: Members) -> None:
        arrays[name] = value

    def unpacked(_: Any, name: str, arrays: Members) -> Any:
        array = _member(arrays, name)
        is_one = array.dtype.kind in "fiub" if dtype is None else array.dtype == dtype
        if not is_one:
            raise InvalidInput(f"{name}: expected {words}, got {array.dtype}")
        return looked_at(array, name)

    return FieldPart(words, unpacked, packed, checked, in_header=False, axes=axes)


_NOUNS: Final = {"f": "numbers", "i": "integers", "u": "integers", "b": "truth values"}


def _refuse_outside(array: Any, name: str, bounds: Bounds) -> None:
    """Refuse numbers that are not within bounds, with the first of them."""
    most = math.inf if bounds.infinite else _LARGEST
    if array.size == 0 or (
        max(bounds.low, -most) <= array.min().item()
        and array.max().item() <= min(bounds.high, most)
    ):
        return
    if array.dtype.kind == "f":
        refused = np.zeros(array.shape, dtype=bool)
        if not bounds.missing:
            refused |= np.isnan(array)
        if not bounds.infinite:
            refused |= np.isinf(array)
        refuse_any(refused, array, name, "not finite")
    outside = (array < bounds.low) | (array > bounds.high)
    if outside.any():
        raise InvalidInput(
            f"{name}: expected numbers {_range_in_words(bounds)}, got "
            f"{array[outside][0].item()!r}"
        )


def _maybe(part: FieldPart) -> FieldPart:
    """A part, or None."""

    def checked(value: Any, name: str) -> Any:
        return None if value is None else part.checked(value, name)

    def packed(value: Any, name: str, arrays: Members) -> Any:
        return None if value is None else part.packed(value, name, arrays)

    def unpacked(plain: Any, name: str, arrays: Members) -> Any:
        there = plain is not None if part.in_header else name in arrays
        return part.unpacked(plain, name, arrays) if there else None

    words, axes = f"{part.words}, or null", part.axes
    return FieldPart(words, unpacked, packed, checked, part.in_header, axes, there=part)


@_once
def _record(cls: Any) -> FieldPart:
    """An object that is its fields."""
    words, is_declared = f"the fields of {cls.__name__}", issubclass(cls, Declared)
    # whether equal ones stand in a file once, as names of rows and columns do
    is_shared = bool(getattr(cls, "shared_in_files", False))

    def packed(value: Any, name: str, arrays: Members) -> Any:
        inside, plain = f"{name}." if name else "", {}
        for key, part in parts_of(cls).items():
            own = part.packed(getattr(value, key), inside + key, arrays)
            if part.in_header:
                plain[key] = own
        return arrays.place_of(plain) if is_shared else plain

    def unpacked(plain: Any, name: str, arrays: Members) -> Any:
        if is_shared:
            return arrays.made_of(cls, plain, lambda own: made(own, name, arrays))
        return made(plain, name, arrays)

    def made(plain: Any, name: str, arrays: Members) -> Any:
        if not isinstance(plain, dict):
            raise _refusal(name, words, plain)
        inside, parts = f"{name}." if name else "", parts_of(cls)
        if plain.keys() != (known := _keys_of(cls)):
            key = min(plain.keys() ^ known)
            has = "no" if key in known else "also"
            raise InvalidInput(f"its header has {has} {inside}{printable(key)}")
        fields = {
            key: part.unpacked(plain.get(key), inside + key, arrays)
            for key, part in parts.items()
        }
        try:
            result = cls(**fields)
            if name and is_declared:
                result.validate()
        except InvalidInput as error:
            raise InvalidInput(f"{name}: {error}" if name else str(error)) from None
        return result

    return FieldPart(words, unpacked, packed, _instance(cls, words), record=cls)


def _instance(cls: Any, words: str) -> Callable[[Any, str], Any]:
    def checked(value: Any, name: str) -> Any:
        if not isinstance(value, cls):
            raise _refusal(name, words, value)
        return value

    return checked


def _own_way(cls: Any) -> FieldPart:
    """An object with ``packed_into(arrays)`` and ``unpacked_from(plain, arrays)``."""
    words = f"what makes a {cls.__name__}"

    def packed(value: Any, name: str, arrays: Members) -> Any:
        own: dict[str, Any] = {}
        plain = value.packed_into(own)
        arrays.update({f"{name}.{key}": array for key, array in own.items()})
        return plain

    def unpacked(plain: Any, name: str, arrays: Members) -> Any:
        if not isinstance(plain, dict):
            raise _refusal(name, words, plain)
        inside = {key: arrays.pop(f"{name}.{key}") for key in arrays.under(name)}
        return cls.unpacked_from(plain, inside)

    return FieldPart(words, unpacked, packed, _instance(cls, words))


def _columns(cls: Any, bounds: Bounds) -> FieldPart:
    """A tuple of records of one kind, saved field by field."""
    words = f"a list of the fields of {cls.__name__}"
    parts = {
        key: _columns(part.record, Bounds())
        if part.record
        else _many(part, None, Bounds())
        for key, part in parts_of(cls).items()
    }
    known = _keys_of(cls)

    def packed(value: Any, name: str, arrays: Members) -> Any:
        plain = {}
        for key, part in parts.items():
            column = [getattr(x, key) for x in value]
            own = part.packed(column, f"{name}.{key}", arrays)
            if part.in_header:
                plain[key] = own
        return plain

    def unpacked(plain: Any, name: str, arrays: Members) -> Any:
        if not isinstance(plain, dict) or plain.keys() != known:
            raise _refusal(name, words, plain)
        fields = {
            key: part.unpacked(plain.get(key), f"{name}.{key}", arrays)
            for key, part in parts.items()
        }
        lengths = {len(column) for column in fields.values()}
        if len(lengths) > 1 or (bounds.nonempty and lengths == {0}):
            raise InvalidInput(
                f"{name}: expected as many of each field, got {sorted(lengths)}"
            )
        return tuple(
            cls(**dict(zip(fields, own, strict=True)))
            for own in zip(*fields.values(), strict=True)
        )

    return FieldPart(words, unpacked, packed)


def is_text(value: object) -> bool:
    """True for text that can be written; half a surrogate pair cannot."""
    return isinstance(value, str) and (value.isascii() or not _HALF.search(value))


_HALF: Final = re.compile("[\ud800-\udfff]")


def _range_in_words(bounds: Bounds) -> str:
    """What of numbers is expected; nothing where they may be any."""
    if math.isfinite(bounds.low) and math.isfinite(bounds.high):
        return f"from {bounds.low:g} to {bounds.high:g}"
    if math.isfinite(bounds.low):
        return f">= {bounds.low:g}"
    return f"<= {bounds.high:g}" if math.isfinite(bounds.high) else ""


def _member(arrays: dict[str, Any], name: str) -> Any:
    if name not in arrays:
        raise InvalidInput(f"it has no {name}")
    return arrays.pop(name)


# ---- From annotations to parts, once for each class


@_once
def parts_of(cls: Any) -> Mapping[str, FieldPart]:
    """How each field of a dataclass is read, those that are left out excepted."""
    hints = get_type_hints(cls)
    parts = {}
    for field in dataclasses.fields(cls):
        said = field.metadata.get(_SAID, Bounds())
        if said is not _LEFT and field.init:
            parts[field.name] = part_of(hints[field.name], said)
    return parts


@_once
def _keys_of(cls: Any) -> frozenset[str]:
    """Those fields that stand in a header."""
    return frozenset(key for key, part in parts_of(cls).items() if part.in_header)


@_once
def _arrays_of(cls: Any) -> tuple[tuple[tuple[str, FieldPart], ...], int]:
    """The arrays that a constructor looks at; of how many any lengths agree."""
    parts = parts_of(cls).items()
    arrays = tuple((name, part) for name, part in parts if not part.in_header)
    axes = [part.axes for _, part in arrays if part.axes is not None]
    are_letters = all(one.isalpha() for own in axes for one in own)
    are_free = are_letters and all(len(set(own)) == len(own) for own in axes)
    return arrays, int(are_free)


def part_of(hint: Any, bounds: Bounds) -> FieldPart:
    """How a value of one type is read."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is not None and hasattr(origin, "__value__"):  # NDArray of newer NumPy
        return part_of(origin.__value__[inside], bounds)
    hints = inside if origin in (Union, types.UnionType) else (hint,)
    scalars = [_scalars(one) for one in hints]
    if None not in scalars:
        return _scalar([x for own in scalars for x in own or ()], bounds)
    if len(hints) > 1:  # one thing and None
        (one,) = [one for one in hints if one is not type(None)]
        return _maybe(part_of(one, bounds))
    each = dataclasses.replace(bounds, axes=None, nonempty=False)
    if origin is tuple:
        length = None if inside[-1] is Ellipsis else len(inside)
        part = part_of(inside[0], each)
        if bounds.by_column and part.record:
            return _columns(part.record, bounds)
        return _many(part, length, bounds)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _named(part_of(inside[1], each))
    if origin is np.ndarray:
        return _numbers(get_args(inside[1])[0], bounds)
    if isinstance(hint, type) and hasattr(hint, "unpacked_from"):
        return _own_way(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _record(hint)
    raise TypeError(f"no file has a field of type {hint!r}")


_SCALARS: Final = (float, int, str, bool, type(None), Hashable)


def _scalars(hint: Any) -> tuple[Any, ...] | None:
    """The type or words that a scalar may be; None where a hint is of no scalar."""
    if hint in _SCALARS:
        return (hint,)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return ()  # a number of NumPy becomes one of Python
    return None


# ---- What is declared


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(field, transient),
)
class Declared:
    """An object that is its fields; a subclass is a frozen dataclass of keywords.

    Arrays are made read-only, and copied where somebody could write to them. Axes of
    one letter have one length.
    """

    # what its files are called, and their version; parts of other objects have none
    form: ClassVar[Format]
    __dataclass_fields__: ClassVar[dict[str, Any]]
    _lazy: ClassVar[tuple[str, ...]] = ()
    _left: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(
        cls, *, kind: str = "", noun: str = "", version: int = 1, eq: bool = False
    ) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(frozen=True, kw_only=True, eq=eq, repr=False)(cls)
        suggests_arguments(cls)
        if kind:
            cls.form = Format(kind, noun or f"a {kind}", version)
        fields = dataclasses.fields(cls)
        left_out = [field for field in fields if field.metadata.get(_SAID) is _LEFT]
        cls._left = {field.name: field.default for field in left_out}
        lazy = [field for field in fields if field.metadata.get("lazy")]
        cls._lazy = tuple(field.name for field in lazy)
        for field in lazy:
            setattr(cls, field.name, _LazyField(field.name, field.default))

    def __post_init__(self) -> None:
        fields, shapes = self.__dict__, []
        arrays, n_free = _arrays_of(type(self))
        for name, part in arrays:
            value = fields[name]
            if value is None and part.there:
                continue
            if not isinstance(value, Lazy):
                fields[name] = value = part.checked(value, name)
            shape = None if part.axes is None else getattr(value, "shape", None)
            if shape is not None:  # of a lazy one it may be known
                shapes.append((name, part.axes, shape))
        if len(shapes) > n_free:
            _refuse_other_lengths(shapes)

    def resolve(self, name: str, value: Any) -> None:
        """Put a lazy field's value in its place, checked."""
        if name in self._left:
            vars(self)[name] = value
            return
        vars(self)[name] = parts_of(type(self))[name].checked(value, name)
        Declared.__post_init__(self)

    def settled(self, *, pickled: bool = False) -> dict[str, Any]:
        """Its fields, none of them to be computed but what a pickle takes as it is.

        Without a pickle those that files leave out stay as they are.
        """
        for name in self._lazy:
            if name in self._left and not pickled:
                continue
            value = vars(self)[name]
            if isinstance(value, Lazy) and not (pickled and value.is_pickled):
                getattr(self, name)
        return vars(self)

    def __copy__(self) -> Self:
        again = object.__new__(type(self))
        vars(again).update(vars(self))
        return again

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        del memo  # nobody writes to its arrays; models and programs are shared
        return copy(self)

    def __getstate__(self) -> dict[str, Any]:
        state, reasons = dict(self.settled(pickled=True)), {}
        for name, default in self._left.items():
            reason = None if state[name] is default else _why_no_pickle(state[name])
            if reason is not None:
                state[name], reasons[name] = default, reason
        return {**state, _UNPICKLED: reasons} if reasons else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for name, *_ in _arrays_of(type(self))[0]:  # a pickle's can be written to
            for array in _inside(state.get(name)):
                array.setflags(write=False)

    def why_not(self, name: str, otherwise: str) -> str:
        """Why a field is not there that files leave out: a pickle's reason, if any."""
        reason = vars(self).get(_UNPICKLED, {}).get(name)
        return otherwise if reason is None else f"a pickle has lost it: {reason}"

    # ---- files

    def validate(self) -> None:
        """Refuse fields of which one says something else than another."""

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file: arrays, one JSON header, a digest; no pickles."""
        form, target = self.form, archive_path(path)
        arrays, whole = Members(), _record(type(self))
        try:
            self.settled()
            plain = whole.packed(self, "", arrays)
            if arrays.shared:
                plain["shared"] = arrays.shared
            text = as_json({"format": form.name, "version": form.version, **plain})
            plain = form.parsed(text)[1]
            again = Members(arrays, plain.pop("shared", None))
            whole.unpacked(plain, "", again).validate()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"{target}: cannot be saved: {error}") from None
        form.write(target, text, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        made = cls.read(path)
        try:
            made.validate()
        except InvalidInput as error:
            raise cls.form.refusal(archive_path(path), str(error)) from None
        return made

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The same, though its fields may contradict each other."""
        form, source = cls.form, archive_path(path)
        header, members = form.read(source)
        try:
            has_shared, shared = "shared" in header, header.pop("shared", None)
            if has_shared and not (isinstance(shared, list) and shared):
                raise InvalidInput("shared: expected a list of records")
            arrays = Members(members, shared)
            made: Self = _record(cls).unpacked(header, "", arrays)
            arrays.refuse_rest()
        except (InvalidInput, RecursionError) as error:
            raise form.refusal(source, str(error)) from None
        return made


_UNPICKLED: Final = "_unpickled"
"""Among the attributes of what came from a pickle: why it lacks a field."""


def _why_no_pickle(value: Any) -> str | None:
    """Why pickle cannot hold a value, such as a user's lambda; None if it can."""
    try:
        pickle.dumps(value)
    except Exception as error:  # noqa: BLE001  # whatever a __reduce__ raises
        return printable(f"{type(error).__name__}: {error}")
    return None


def _refuse_other_lengths(
    arrays: Sequence[tuple[str, Any, tuple[int, ...]]],
) -> None:
    """Refuse arrays of which one letter among the axes has two lengths."""
    sizes: dict[str, int] = {}
    for name, axes, shape in arrays:
        expected = []
        for axis, length in zip(axes, shape, strict=True):
            letter, _, less = axis.partition("-")
            if axis.isalpha():
                expected.append(sizes.setdefault(axis, length))
            elif less:  # "D-1", at least zero
                expected.append(max(sizes.get(letter, 0) - int(less), 0))
            else:
                expected.append(int(axis))
        if shape != tuple(expected):
            raise InvalidInput(f"{name}: expected shape {tuple(expected)}, got {shape}")


def _inside(value: Any) -> list[Any]:
    """The arrays of a field: one, several, or by name."""
    if isinstance(value, np.ndarray):
        return [value]
    items = value.values() if isinstance(value, Mapping) else value
    items = () if items is None or isinstance(items, Lazy) else items
    return [x for x in items if isinstance(x, np.ndarray)]

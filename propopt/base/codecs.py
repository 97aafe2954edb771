"""Codecs: how values of an annotated type are checked, saved and loaded.

The codec of a field is compiled once from its annotation and its :class:`Bounds`.
Numbers, texts and names are in the JSON header of a file. Arrays are other members of
the archive, named by the path of their field, such as ``parts.0.numbers``.
"""

from __future__ import annotations

import dataclasses
import math
import re
import reprlib
import sys
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, partial
from typing import (
    Any,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from propopt.base.checks import as_floats, refuse_any
from propopt.base.errors import InvalidInput
from propopt.base.text import enumerated, plain_name, printable


_Function = TypeVar("_Function")


def cached_by_class(function: _Function) -> _Function:
    """A function of a class that is called once for each; its signature stays."""
    return cast("_Function", cache(cast("Any", function)))


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Bounds:
    """What an annotation cannot say: the shape of an array, and limits of its values.

    Axes are letters or numbers, such as ``("N", "D-1")``; equal letters have equal
    lengths.
    """

    axes: tuple[str, ...] | None = None  # None for any shape
    low: float = -math.inf
    high: float = math.inf
    missing: bool = False  # NaN is allowed
    infinite: bool = False
    nonempty: bool = False  # a list or array has at least one item
    halves: bool = False  # text may have half a surrogate pair
    by_column: bool = False  # a list of records is saved field by field
    codec: Codec | None = None  # in place of that of the annotation


BOUNDS: Final = "propopt"
"""The key of the bounds in the metadata of a field."""

TRANSIENT: Final = object()
"""The value in place of bounds for a field that files omit."""


# ---- The arrays of a file, and the records that several of its objects share


@final
class Members(dict[str, Any]):
    """Arrays of a file by name, and the records that several objects share."""

    def __init__(self, arrays: Mapping[str, Any], shared: list[Any]) -> None:
        super().__init__(arrays)
        self.shared = shared
        self._made: dict[tuple[type, int], Any] = {}

    def take(self, name: str) -> Any:
        """Remove an array, and return it; refused if there is none."""
        if name not in self:
            raise InvalidInput(f"it has no {name}")
        return self.pop(name)

    def below(self, name: str) -> list[str]:
        """The rest of each name that begins with ``name`` and a dot."""
        return [key[len(name) + 1 :] for key in self if key.startswith(f"{name}.")]

    def index_of(self, plain: Any) -> int:
        """The index of a record among the shared ones; added if it is new."""
        if plain not in self.shared:
            self.shared.append(plain)
        return self.shared.index(plain)

    def object_of(self, cls: type, index: object, make: Callable[[Any], Any]) -> Any:
        """The object of a shared record, made once."""
        if type(index) is not int or not 0 <= index < len(self.shared):
            raise InvalidInput(f"shared: expected an index below {len(self.shared)}")
        if (cls, index) not in self._made:
            self._made[cls, index] = make(self.shared[index])
        return self._made[cls, index]

    def refuse_rest(self) -> None:
        """Refuse arrays and shared records that no field uses."""
        for name in self:
            raise InvalidInput(f"it also has the array {name!r}")
        if len({index for _, index in self._made}) < len(self.shared):
            raise InvalidInput("shared: a record of the file is not used by any field")


# ---- Scalars: numbers, texts, truth values, null


Check: TypeAlias = Callable[[Any, str], Any]
"""From a value and its name to the value that an object holds; refuses others."""

Convert: TypeAlias = Callable[[Any, str, Members], Any]
"""From a value to JSON, or back; arrays are put into the members, or taken out."""


def _unchanged(value: Any, *_: object) -> Any:
    return value


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Codec:
    """How values of one annotation are checked, packed and unpacked."""

    expected: str  # in words, for errors
    unpack: Convert
    pack: Convert = _unchanged
    check: Check = _unchanged  # of arrays alone: constructors check no scalars
    in_header: bool = True  # False: it is stored among the arrays
    axes: tuple[str, ...] | None = None  # of an array
    record: Any = None  # the class of a record
    is_optional: bool = False


def _refusal(name: str, expected: str, value: object) -> InvalidInput:
    return InvalidInput(f"{name}: expected {expected}, got {reprlib.repr(value)}")


_LARGEST: Final = sys.float_info.max
_INFINITE: Final = ("inf", "-inf")
_SCALARS: Final = (float, int, str, bool, type(None), Hashable)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two characters that JSON reads back as one."""


def is_text(value: object) -> bool:
    """Whether it is text that can be written: without half a surrogate pair."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not _SURROGATE.search(value)


def _range(bounds: Bounds) -> str:
    """The range of numbers in words; empty if they are unbounded."""
    if math.isfinite(bounds.low) and math.isfinite(bounds.high):
        return f" from {bounds.low:g} to {bounds.high:g}"
    if math.isfinite(bounds.low):
        return f" >= {bounds.low:g}"
    return f" <= {bounds.high:g}" if math.isfinite(bounds.high) else ""


def _scalar(options: Sequence[Any], bounds: Bounds) -> Codec:
    """A number, text, truth value or null; or one of several types and words."""
    is_name = Hashable in options
    is_nullable = type(None) in options
    kinds = {x for x in options if x in _SCALARS}
    kinds |= {float, int, str} if is_name else {int} if float in kinds else set()
    low = bounds.low
    high = bounds.high
    least = max(low, -_LARGEST)
    most = min(high, _LARGEST)
    takes_infinite = bounds.infinite or is_name
    takes_missing = bounds.missing or (is_name and not is_nullable)
    words = {
        float: f"a {'' if bounds.infinite else 'finite '}number{_range(bounds)}",
        int: f"an integer{_range(bounds)}",
        str: "text",
        bool: "true or false",
        Hashable: "text or a number",
        type(None): "null",
    }
    phrases = [words.get(x) or repr(x) for x in options]
    phrases += ["null"] if bounds.missing else []
    expected = enumerated(list(dict.fromkeys(phrases)), "or")

    def unpack(plain: Any, name: str, members: Members) -> Any:
        kind = type(plain)
        if kind is float or kind is int:
            if kind in kinds and (  # no table has integers beyond all floats
                least <= plain <= most
                or (kind is float and takes_infinite and low <= plain <= high)
                or (plain != plain and takes_missing)
            ):
                return plain
        elif kind is str:
            if bounds.infinite and plain in _INFINITE:
                return unpack(float(plain), name, members)
            if plain in options or (str in kinds and (bounds.halves or is_text(plain))):
                return plain
        elif kind in kinds:
            return plain
        elif plain is None and takes_missing:
            return math.nan  # one NaN, which is itself
        raise _refusal(name, expected, plain)

    def pack(value: Any, name: str, _: Members) -> Any:
        if value is None and is_nullable:
            return None
        if is_name:
            value = plain_name(value)
        if isinstance(value, str):
            if not value.isascii() and _SURROGATE_PAIR.search(value):
                raise InvalidInput(
                    f"{name}: the text has two adjacent surrogates, each half a "
                    "character"
                )
        elif isinstance(value, float | np.floating) and not math.isfinite(value):
            if math.isnan(value) and is_nullable and not bounds.missing:
                raise _refusal(name, expected, value)  # it would be loaded as None
            return None if math.isnan(value) else str(float(value))
        elif is_name and not abs(value) <= _LARGEST:
            return str(value)
        return value

    return Codec(expected, unpack, pack)


# ---- Arrays


_NOUNS: Final = {"f": "numbers", "i": "integers", "u": "integers", "b": "truth values"}


def _array(kind: Any, bounds: Bounds) -> Codec:
    """An array of numbers of one type, or of any; copied if it can be written to."""
    dtype = None if kind is Any else np.dtype(kind)
    axes = bounds.axes
    noun = _NOUNS["f" if dtype is None else dtype.kind]
    expected = noun if axes is None else f"{noun} of shape ({', '.join(axes)})"

    def check(value: Any, name: str) -> Any:
        is_array = isinstance(value, np.ndarray)
        if is_array and (dtype is None or value.dtype == dtype):
            if not value.flags.writeable:
                return value  # checked before, or on loading
            if dtype is not None and type(value) is np.ndarray:
                return check_numbers(value.copy(order="K"), name)
        if dtype == np.float64:
            return check_numbers(as_floats(value, name), name)
        array = np.array(value)
        if dtype is None:  # other than numbers are refused by save
            array.setflags(write=False)
            return array
        if array.dtype.kind not in "fiub":
            raise InvalidInput(f"{name}: expected {expected}, got {array.dtype}")
        converted = array.astype(dtype)
        if not (converted == array).all():
            raise _refusal(name, expected, value)
        return check_numbers(converted, name)

    def check_numbers(array: Any, name: str) -> Any:
        if axes is not None and array.ndim != len(axes):
            raise InvalidInput(
                f"{name}: expected {len(axes)} dimensions, got an array of shape "
                f"{array.shape}"
            )
        if bounds.nonempty and array.size == 0:
            raise InvalidInput(f"{name}: the array is empty, of shape {array.shape}")
        if dtype is not None and dtype.kind != "b":
            _refuse_outside(array, name, bounds)
        array.setflags(write=False)
        return array

    def pack(value: Any, name: str, members: Members) -> None:
        members[name] = value

    def unpack(_: Any, name: str, members: Members) -> Any:
        array = members.take(name)
        if array.dtype.kind not in "fiub" if dtype is None else array.dtype != dtype:
            raise InvalidInput(f"{name}: expected {expected}, got {array.dtype}")
        return check_numbers(array, name)

    return Codec(expected, unpack, pack, check, False, axes)


def _refuse_outside(array: Any, name: str, bounds: Bounds) -> None:
    """Refuse numbers outside of the bounds; the message has the first of them."""
    if array.dtype.kind == "f":
        refused = ~np.isfinite(array)
        if bounds.missing:
            refused &= ~np.isnan(array)
        if bounds.infinite:
            refused &= ~np.isinf(array)
        if refused.any():
            refuse_any(refused, array, name, "not finite")
    outside = array[(array < bounds.low) | (array > bounds.high)]
    if outside.size:
        raise InvalidInput(
            f"{name}: expected numbers{_range(bounds)}, got {outside[0].item()!r}"
        )


# ---- Containers: optional values, lists, mappings, records


def _optional(codec: Codec) -> Codec:
    """A value of a codec, or None."""

    def pack(value: Any, name: str, members: Members) -> Any:
        return None if value is None else codec.pack(value, name, members)

    def unpack(plain: Any, name: str, members: Members) -> Any:
        is_none = plain is None if codec.in_header else name not in members
        return None if is_none else codec.unpack(plain, name, members)

    return dataclasses.replace(
        codec,
        expected=f"{codec.expected}, or null",
        unpack=unpack,
        pack=pack,
        is_optional=True,
    )


def _list(codec: Codec, length: int | None, bounds: Bounds) -> Codec:
    """A tuple of values of one codec, of any length or of a fixed one."""
    noun = "a list" if length is None else f"a list of {length}"
    expected = f"{noun}, each {codec.expected}"
    least = int(bounds.nonempty)

    def refuse(value: Any, name: str, kinds: Any) -> None:
        if not isinstance(value, kinds) or (
            len(value) < least if length is None else len(value) != length
        ):
            raise _refusal(name, expected, value)

    def check(value: Any, name: str) -> Any:
        refuse(value, name, (list, tuple))
        return tuple(codec.check(x, f"{name}[{k}]") for k, x in enumerate(value))

    def pack(value: Any, name: str, members: Members) -> Any:
        refuse(value, name, (list, tuple))
        return [codec.pack(x, f"{name}.{k}", members) for k, x in enumerate(value)]

    def unpack(plain: Any, name: str, members: Members) -> Any:
        refuse(plain, name, list)
        one = codec.unpack
        return tuple([one(x, f"{name}.{k}", members) for k, x in enumerate(plain)])

    if codec.in_header:
        return Codec(expected, unpack, pack, check)
    return _ragged(codec, expected, check)


def _ragged(codec: Codec, expected: str, check: Check) -> Codec:
    """Arrays of several lengths, saved as one array and their sizes."""

    def pack(value: Any, name: str, members: Members) -> Any:
        members[name] = np.concatenate([*value, codec.check([], name)])
        members[f"{name}.sizes"] = np.array(list(map(len, value)), dtype=np.int64)

    def unpack(_: Any, name: str, members: Members) -> Any:
        sizes = members.take(f"{name}.sizes")
        joined = codec.unpack(None, name, members)
        if sizes.dtype != np.int64 or sizes.ndim != 1 or (sizes < 0).any():
            raise InvalidInput(f"{name}.sizes: expected integers >= 0")
        if joined.ndim != 1 or int(sizes.sum()) != len(joined):
            raise InvalidInput(
                f"{name}: the count of numbers differs from the sizes saved"
            )
        arrays = np.split(joined, np.cumsum(sizes)[:-1]) if len(sizes) else []
        return check(tuple(arrays), name)

    return Codec(expected, unpack, pack, check, in_header=False)


def _mapping(codec: Codec) -> Codec:
    """A mapping from text to values of one codec."""
    expected = f"by name {codec.expected}"
    in_header = codec.in_header

    def check(value: Any, name: str) -> Any:
        if not isinstance(value, Mapping):
            raise _refusal(name, expected, value)
        return {k: codec.check(x, f"{name}.{k}") for k, x in value.items()}

    def pack(value: Any, name: str, members: Members) -> Any:
        return {k: codec.pack(x, f"{name}.{k}", members) for k, x in value.items()}

    def unpack(plain: Any, name: str, members: Members) -> Any:
        if not in_header:
            plain = dict.fromkeys(members.below(name))
        if not isinstance(plain, dict) or not all(map(is_text, plain)):
            raise _refusal(name, expected, plain)
        return {k: codec.unpack(x, f"{name}.{k}", members) for k, x in plain.items()}

    return Codec(expected, unpack, pack, check, in_header)


def _pack_fields(
    codecs: Mapping[str, Codec], get: Callable[[str], Any], name: str, members: Members
) -> dict[str, Any]:
    """The part of some fields that stands in the header."""
    prefix = f"{name}." if name else ""
    plain = {}
    for key, codec in codecs.items():
        packed = codec.pack(get(key), prefix + key, members)
        if codec.in_header:
            plain[key] = packed
    return plain


def _unpack_fields(
    cls: Any, codecs: Mapping[str, Codec], plain: Any, name: str, members: Members
) -> dict[str, Any]:
    """The values of some fields; refused unless the header has them and no others."""
    if not isinstance(plain, dict):
        raise _refusal(name, f"the fields of {cls.__name__}", plain)
    prefix = f"{name}." if name else ""
    keys = _header_keys(cls)
    if plain.keys() != keys:
        key = min(plain.keys() ^ keys)
        verb = "no" if key in keys else "also"
        raise InvalidInput(f"its header has {verb} {prefix}{printable(key)}")
    return {
        key: codec.unpack(plain.get(key), prefix + key, members)
        for key, codec in codecs.items()
    }


@cached_by_class
def record_codec(cls: Any) -> Codec:
    """The codec of a dataclass; the name is empty for the object that a file holds."""
    # whether equal records are stored once, such as names of rows and columns
    is_shared = bool(getattr(cls, "shared_in_files", False))

    def pack(value: Any, name: str, members: Members) -> Any:
        plain = _pack_fields(codecs_of(cls), partial(getattr, value), name, members)
        return members.index_of(plain) if is_shared else plain

    def unpack(plain: Any, name: str, members: Members) -> Any:
        if not is_shared:
            return make(plain, name, members)
        return members.object_of(cls, plain, lambda record: make(record, name, members))

    def make(plain: Any, name: str, members: Members) -> Any:
        fields = _unpack_fields(cls, codecs_of(cls), plain, name, members)
        try:
            result = cls(**fields)
            if name and hasattr(result, "validate"):
                result.validate()
        except InvalidInput as error:
            raise InvalidInput(f"{name}: {error}" if name else str(error)) from None
        return result

    return Codec(f"the fields of {cls.__name__}", unpack, pack, record=cls)


def _columns(cls: Any, bounds: Bounds) -> Codec:
    """A tuple of records of one class, saved field by field."""
    codecs = {k: _list(one, None, Bounds()) for k, one in codecs_of(cls).items()}

    def pack(value: Any, name: str, members: Members) -> Any:
        return _pack_fields(
            codecs, lambda key: [getattr(x, key) for x in value], name, members
        )

    def unpack(plain: Any, name: str, members: Members) -> Any:
        columns = _unpack_fields(cls, codecs, plain, name, members).values()
        lengths = set(map(len, columns))
        if len(lengths) > 1 or (bounds.nonempty and lengths == {0}):
            raise InvalidInput(
                f"{name}: expected fields of equal lengths, got {sorted(lengths)}"
            )
        rows = zip(*columns, strict=True)
        return tuple(cls(**dict(zip(codecs, row, strict=True))) for row in rows)

    return Codec(f"a list of the fields of {cls.__name__}", unpack, pack)


# ---- From annotations to codecs


def _codec(hint: Any, bounds: Bounds) -> Codec:
    """The codec of an annotation."""
    if bounds.codec is not None:
        return bounds.codec
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin is not None and hasattr(origin, "__value__"):  # NDArray of newer NumPy
        return _codec(origin.__value__[arguments], bounds)
    hints = arguments if origin in (Union, types.UnionType) else (hint,)
    scalars = [_options(one) for one in hints]
    if None not in scalars:
        return _scalar([x for options in scalars for x in options or ()], bounds)
    if len(hints) > 1:  # an optional value
        (one,) = [one for one in hints if one is not type(None)]
        return _optional(_codec(one, bounds))
    items = dataclasses.replace(bounds, axes=None, nonempty=False)
    if origin is tuple:
        codec = _codec(arguments[0], items)
        if bounds.by_column and codec.record:
            return _columns(codec.record, bounds)
        length = None if arguments[-1] is Ellipsis else len(arguments)
        return _list(codec, length, bounds)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_codec(arguments[1], items))
    if origin is np.ndarray:
        return _array(get_args(arguments[1])[0], bounds)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return record_codec(hint)
    raise TypeError(f"a field of type {hint!r} cannot be saved to a file")


def _options(hint: Any) -> tuple[Any, ...] | None:
    """The types or words that a scalar may be; None if the hint is no scalar."""
    if hint in _SCALARS:
        return (hint,)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return ()  # a number of NumPy becomes one of Python
    return None


@cached_by_class
def codecs_of(cls: Any) -> Mapping[str, Codec]:
    """The codec of each field of a dataclass that files contain."""
    hints = get_type_hints(cls)
    codecs = {}
    for one in dataclasses.fields(cls):
        bounds = one.metadata.get(BOUNDS, Bounds())
        if bounds is not TRANSIENT and one.init:
            codecs[one.name] = _codec(hints[one.name], bounds)
    return codecs


@cached_by_class
def _header_keys(cls: Any) -> frozenset[str]:
    return frozenset(key for key, codec in codecs_of(cls).items() if codec.in_header)


# ---- The arrays of an object, as its constructor checks them


LATER: Final = " later"
"""What follows the name of a field that is computed on first access."""


@cached_by_class
def arrays_of(cls: Any) -> tuple[tuple[str, Codec], ...]:
    """The fields that a constructor checks: those with arrays."""
    return tuple(item for item in codecs_of(cls).items() if not item[1].in_header)


def check_arrays(cls: Any, fields: dict[str, Any]) -> None:
    """Check the arrays among the fields of an object, and make them read-only."""
    sizes = dict[str, int]()
    for name, codec in arrays_of(cls):
        value: Any = fields.get(name)
        if name not in fields:
            value = fields[f"{name}{LATER}"]
        elif value is not None or not codec.is_optional:
            fields[name] = value = codec.check(value, name)
        shape = getattr(value, "shape", None)  # some lazy values have it too
        if codec.axes is not None and shape is not None:
            _refuse_shape(name, codec.axes, shape, sizes)


def _refuse_shape(
    name: str, axes: tuple[str, ...], shape: tuple[int, ...], sizes: dict[str, int]
) -> None:
    """Refuse a shape if a letter among the axes has another length than before."""
    if len(shape) != len(axes):
        raise InvalidInput(
            f"{name}: expected {len(axes)} dimensions, got an array of shape {shape}"
        )
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

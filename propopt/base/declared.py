"""Dataclasses whose fields are declared once, and then checked, saved and loaded.

The annotation of a field gives its type, and :func:`field` what a type cannot say: the
axes of an array, bounds, whether numbers may be missing. They define the checks of the
constructor, the layout of the file, and the checks of a file that is loaded::

    class Scores(Declared, kind="propopt scores", noun="saved scores", version=1):
        estimates: Array = field("Q", missing=True)
        errors: Array | None = field("Q", low=0.0, default=None)
        names: tuple[str, ...] = field()
        model: Any = transient(default=None)

A file is an archive of arrays with one JSON header and a digest of both. The digest
detects accidents, such as flipped bits or an exchanged member. Contradictions between
fields are detected by :meth:`Declared.validate`. Neither detects a consistent forgery.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    final,
)

from propopt.base.codecs import (
    BOUNDS,
    LATER,
    TRANSIENT,
    Bounds,
    Members,
    check_arrays,
    codecs_of,
    record_codec,
)
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, archive_path, as_json
from propopt.base.text import printable


T = TypeVar("T")

# ---- What a declaration adds to the annotation of a field


def field(
    axes: str | None = None,
    *,
    default: Any = dataclasses.MISSING,
    factory: Any = dataclasses.MISSING,
    lazy: bool = False,
    of: str = "",
    **bounds: Any,
) -> Any:
    """Declare a field that files contain: the axes of its array and its bounds.

    Axes are letters or numbers; equal letters have equal lengths. ``bounds`` are those
    of :class:`Bounds`. A lazy field may hold a ``Lazy`` value. ``of`` names what the
    field describes, for :meth:`Declared._fields_of`.
    """
    limits = Bounds(axes=None if axes is None else tuple(axes.split()), **bounds)
    metadata = {BOUNDS: limits, "lazy": lazy, "of": of}
    return dataclasses.field(
        default=default, default_factory=factory, metadata=metadata
    )


def transient(
    *, default: Any, compare: bool = True, repr: bool = True, lazy: bool = False
) -> Any:
    """Declare a field that files omit: after loading it has its default.

    Copies share its value. Pickles contain it if it can be pickled.
    """
    metadata = {BOUNDS: TRANSIENT, "lazy": lazy}
    return dataclasses.field(
        default=default, compare=compare, repr=repr, metadata=metadata
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Lazy(Generic[T]):
    """A value that is computed when it is first read."""

    compute: Callable[[], T]

    is_pickled: ClassVar[bool] = False
    """Whether a pickle contains it unevaluated; others are computed for a pickle."""


def lazily(compute: Callable[[], T]) -> T:
    """A lazy value for a field; type checkers see the type of its result."""
    return cast("T", Lazy(compute))


@final
class _LazyField:
    """What Python reads where an object has no value of a lazy field yet."""

    def __init__(self, name: str, default: Any) -> None:
        self._name = name
        self._default = default

    def __get__(self, instance: Any, kind: type | None = None) -> Any:
        if instance is None:
            return self._default
        instance.resolve(self._name, instance.unread(self._name).compute())
        return vars(instance)[self._name]


# ---- The base class


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(field, transient),
)
class Declared:
    """A frozen dataclass of keywords that is checked, saved and loaded by its fields.

    Arrays are made read-only, and copied if they can be written to.
    """

    form: ClassVar[Format]  # of its files; parts of other objects have none
    __dataclass_fields__: ClassVar[dict[str, Any]]
    _lazy: ClassVar[tuple[str, ...]] = ()
    _transient: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(
        cls, *, kind: str = "", noun: str = "", version: int = 1, eq: bool = False
    ) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(frozen=True, kw_only=True, eq=eq, repr=False)(cls)
        if kind:
            cls.form = Format(kind, noun or f"a {kind}", version)
        fields = dataclasses.fields(cls)
        omitted = [one for one in fields if one.metadata.get(BOUNDS) is TRANSIENT]
        cls._transient = {one.name: one.default for one in omitted}
        lazy = [one for one in fields if one.metadata.get("lazy")]
        cls._lazy = tuple(one.name for one in lazy)
        for one in lazy:
            setattr(cls, one.name, _LazyField(one.name, one.default))

    def __post_init__(self) -> None:
        for name in self._lazy:
            if isinstance(vars(self)[name], Lazy):
                self.store(name, vars(self)[name])
        check_arrays(type(self), vars(self))

    def unread(self, name: str) -> Any:
        """The value of a field as it is stored: ``Lazy`` until it is read."""
        fields = vars(self)
        return fields[name] if name in fields else fields[f"{name}{LATER}"]

    def _fields_of(self, subject: str) -> dict[str, Any]:
        """The fields that are declared to describe a subject."""
        names = [
            x.name for x in dataclasses.fields(self) if x.metadata.get("of") == subject
        ]
        return {name: getattr(self, name) for name in names}

    def is_lazy(self, name: str) -> bool:
        """Whether the value of a field is computed when it is first read."""
        return f"{name}{LATER}" in vars(self)

    def store(self, name: str, value: Any) -> None:
        """Store the value of a lazy field, computed or not, in place of another."""
        fields = vars(self)
        later = f"{name}{LATER}"
        fields.pop(name, None)
        fields.pop(later, None)
        fields[later if isinstance(value, Lazy) else name] = value

    def resolve(self, name: str, value: Any) -> None:
        """Store the value of a field that is computed on first access, after a check.

        Parameters
        ----------
        name : str
            The name of the field.
        value : object
            The result of ``Lazy``. The value of a transient field is not checked.

        Returns
        -------
        None
            The object holds the value.

        Raises
        ------
        InvalidInput
            If the value is not valid, or its shape contradicts another field.
        """
        codec = codecs_of(type(self)).get(name)
        if codec is not None and (value is not None or not codec.is_optional):
            value = codec.check(value, name)
        self.store(name, value)
        check_arrays(type(self), vars(self))

    def validate(self) -> None:
        """Raise an error if fields contradict each other, by rules of the subclass."""

    def missing_reason(self, name: str, default: str) -> str:
        """The reason why a field that files do not hold is empty, such as a model.

        Parameters
        ----------
        name : str
            The name of a field that is not saved.
        default : str
            The reason, unless pickling failed: then the error is the reason.

        Returns
        -------
        str
            The reason in words.
        """
        reason = vars(self).get(_UNPICKLED, {}).get(name)
        return default if reason is None else f"a pickle has lost it: {reason}"

    # ---- copies, pickles and files

    def __copy__(self) -> Self:
        again = object.__new__(type(self))
        vars(again).update(vars(self))
        return again

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        del memo  # arrays are read-only; models and programs are shared
        return copy(self)

    def __getstate__(self) -> dict[str, Any]:
        for name in self._lazy:
            value = self.unread(name)
            if isinstance(value, Lazy) and not value.is_pickled:
                getattr(self, name)
        state = dict(vars(self))
        reasons = {}
        for name, default in self._transient.items():
            if state[name] is not default:
                try:
                    pickle.dumps(state[name])
                except Exception as error:  # noqa: BLE001  # such as a user's lambda
                    reasons[name] = printable(f"{type(error).__name__}: {error}")
                    state[name] = default
        return {**state, _UNPICKLED: reasons} if reasons else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        check_arrays(type(self), vars(self))  # those of a pickle can be written to

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file: arrays, one JSON header, a digest; no pickles."""
        target = archive_path(path)
        try:
            text, members = packed(self)
            self._unpack(self.form.parsed(text)[1], members).validate()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"{target}: cannot be saved: {error}") from None
        self.form.write(target, text, members)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that :meth:`save` wrote; any other file raises an error."""
        result = cls.load_unvalidated(path)
        try:
            result.validate()
        except InvalidInput as error:
            raise cls.form.refusal(archive_path(path), str(error)) from None
        return result

    @classmethod
    def load_unvalidated(cls, path: str | Path) -> Self:
        """Read a file as :meth:`load` does, even if fields contradict each other."""
        form = cls.form
        source = archive_path(path)
        header, arrays = form.read(source)
        try:
            return cls._unpack(header, arrays)
        except (InvalidInput, RecursionError) as error:
            raise form.refusal(source, str(error)) from None

    @classmethod
    def _unpack(cls, header: dict[str, Any], arrays: Mapping[str, Any]) -> Self:
        has_shared = "shared" in header
        shared = header.pop("shared", [])
        if has_shared and not (isinstance(shared, list) and shared):
            raise InvalidInput("shared: expected a list of records")
        members = Members(arrays, shared)
        result: Self = record_codec(cls).unpack(header, "", members)
        members.refuse_rest()
        return result


def packed(value: Declared) -> tuple[str, Members]:
    """The JSON header of the file of a value, without its digest, and the arrays."""
    form = value.form
    members = Members({}, [])
    for name in codecs_of(type(value)):
        getattr(value, name)  # lazy fields are computed now
    plain = record_codec(type(value)).pack(value, "", members)
    if members.shared:
        plain["shared"] = members.shared
    return as_json({"format": form.name, "version": form.version, **plain}), members


_UNPICKLED: Final = "_unpickled"
"""The attribute of an unpickled object that says why it lacks transient fields."""

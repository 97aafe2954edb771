"""Fields of an explanation that cost work, done when somebody first asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final


T = TypeVar("T")


@final
@dataclass(frozen=True, eq=False)
class Later(Generic[T]):
    """A value that is computed when it is first asked for.

    Parameters
    ----------
    compute : callable
        Gives the value.
    """

    compute: Callable[[], T]


@final
class WhenAsked(Generic[T]):
    """A field that holds a value, or what is to be computed :class:`Later`.

    As a field of a dataclass its default is None.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type | None = None) -> T | None:
        if owner is None:
            return None  # the default
        fields = vars(owner)
        if isinstance(fields[self._name], Later):
            fields[self._name] = fields[self._name].compute()
        value: T | None = fields[self._name]
        return value

    def __set__(self, owner: Any, value: T | Later[T] | Later[T | None] | None) -> None:
        vars(owner)[self._name] = value


def settled(owner: Any) -> dict[str, Any]:
    """The fields of an object, none of them to be computed any more."""
    fields = vars(owner)
    for name, value in list(fields.items()):
        if isinstance(value, Later):
            getattr(owner, name)
    return fields

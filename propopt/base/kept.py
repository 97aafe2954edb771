"""Parts of a run that are kept while it goes on, so that a killed one continues.

A run does the same things in the same order, whenever it is done. So a part is told by
its number among those of the part around it, by what it is, and by a digest of what it
is made from; the folder is that of one problem. A part is there whole or not at all,
with a digest of its own, and what is read back is what was made, to the last bit. What
took less than :data:`WORTH_KEEPING` is made again. Outside of :func:`keeping`, in other
threads and in workers, nothing is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.declared import Declared
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, as_json, writable_folder


WORTH_KEEPING: Final = 0.02
"""Seconds: writing a part takes a few thousandths."""

_FORM: Final = Format("propopt part", "a part that was kept", 1)
_NAMES: Final = "[0-9a-f]" * 32 + ".npz"

_Some = TypeVar("_Some", bound=Declared)


@final
@dataclass(eq=False)
class Kept:
    """The folder of one problem, and how far the run is."""

    folder: Path
    scope: str = ""  # the part that is being made
    counts: dict[str, int] = field(default_factory=dict)  # parts asked for, by scope

    def path(self, label: str, *of: Any) -> Path:
        """Where the next part of the scope stands, made of these arrays or texts."""
        number = self.counts[self.scope] = self.counts.get(self.scope, 0) + 1
        digest = hashlib.sha256(f"{self.scope} {number} {label}".encode())
        for one in of:
            array = np.ascontiguousarray(one)
            digest.update(f" {array.dtype.str} {array.shape} ".encode())
            digest.update(array.tobytes())
        return self.folder / f"{digest.hexdigest()[:32]}.npz"

    @contextmanager
    def within(self, path: Path) -> Iterator[None]:
        """Parts that are asked for meanwhile are parts of this one."""
        outer, self.scope = self.scope, path.stem
        try:
            yield
        finally:
            self.scope = outer

    def forget(self) -> None:
        """Remove all parts, and the folder if nothing else is there."""
        for path in self.folder.glob(_NAMES):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
            self.folder.parent.rmdir()


_NOW: ContextVar[Kept | None] = ContextVar("kept", default=None)


@contextmanager
def keeping(folder: Path | None) -> Iterator[Kept | None]:
    """Keep parts in a folder meanwhile, and take those that are there; None: nothing.

    The folder is made with the first part.
    """
    token = _NOW.set(None if folder is None else Kept(folder))
    try:
        yield _NOW.get()
    finally:
        _NOW.reset(token)


def kept_array(label: str, make: Callable[[], NDArray[Any]], *of: Any) -> NDArray[Any]:
    """An array that is kept, or made and kept."""
    now = _NOW.get()
    if now is None:
        return make()
    path = now.path(label, *of)
    found = read_part(path)
    if found is not None:
        return found["part"]
    began = perf_counter()
    with now.within(path):
        made = make()
    write_part(path, perf_counter() - began, part=np.asarray(made))
    return made


def kept_result(label: str, make: Callable[[], _Some], kind: type[_Some]) -> _Some:
    """An object that is kept, or made and kept; what files leave out is lost."""
    now = _NOW.get()
    if now is None:
        return make()
    path = now.path(label)
    with suppress(InvalidInput, OSError):
        return kind.load(path)
    began = perf_counter()
    with now.within(path):
        made = make()
    if perf_counter() - began >= WORTH_KEEPING:
        writable_folder(path.parent)
        made.save(path)
    return made


def part_path(label: str, *of: Any) -> Path | None:
    """Where a part stands that is made in pieces; None where nothing is kept."""
    now = _NOW.get()
    return None if now is None else now.path(label, *of)


def read_part(path: Path | None) -> dict[str, NDArray[Any]] | None:
    """The arrays of a part, if it is there and whole."""
    if path is None:
        return None
    try:
        return {name: np.array(x) for name, x in _FORM.read(path)[2].items()}
    except (InvalidInput, OSError):
        return None


def write_part(path: Path | None, seconds: float, **arrays: NDArray[Any]) -> None:
    """Write the arrays of a part that took so long."""
    if path is not None and seconds >= WORTH_KEEPING:
        writable_folder(path.parent)
        text = as_json({"format": _FORM.name, "version": _FORM.version})
        _FORM.write(path, text, arrays)

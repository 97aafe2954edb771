"""Checkpoints: parts of a run are saved while it goes on, so a killed run continues.

A run does the same things in the same order whenever it is repeated. So the file of a
part is named by the number of the part within the surrounding part, its label, and a
digest of its inputs; the folder belongs to one problem. A file is whole or absent, has
a digest, and restores the part to the last bit. Parts that took less than
``MIN_CHECKPOINT_SECONDS`` are computed again. Nothing is saved outside
of :func:`checkpointing`, in other threads and in workers.
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


MIN_CHECKPOINT_SECONDS: Final = 0.02
"""Faster parts are not saved: writing one takes a few thousandths of a second."""

_FORM: Final = Format("propopt part", "a saved part of a run", 1)
_NAMES: Final = "[0-9a-f]" * 32 + ".npz"
_DRAFTS: Final = ".draft-*.npz"

_Object = TypeVar("_Object", bound=Declared)


@final
@dataclass(eq=False)
class Checkpoint:
    """The folder of one problem, and the position of the run in it."""

    folder: Path
    scope: str = ""  # the part that is being computed
    counts: dict[str, int] = field(default_factory=dict)  # parts so far, by scope

    def path(self, label: str, *inputs: Any) -> Path:
        """The path of the next part of the scope, given its arrays or texts."""
        number = self.counts[self.scope] = self.counts.get(self.scope, 0) + 1
        digest = hashlib.sha256(f"{self.scope} {number} {label}".encode())
        for item in inputs:
            array = np.ascontiguousarray(item)
            digest.update(f" {array.dtype.str} {array.shape} ".encode())
            digest.update(array.tobytes())
        return self.folder / f"{digest.hexdigest()[:32]}.npz"

    @contextmanager
    def within(self, path: Path) -> Iterator[None]:
        """Parts that are computed within belong to this one."""
        outer = self.scope
        self.scope = path.stem
        try:
            yield
        finally:
            self.scope = outer

    def forget(self) -> None:
        """Remove all parts, also unfinished ones, and the folder if it is empty."""
        for name in (_NAMES, _DRAFTS):
            for path in self.folder.glob(name):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
            self.folder.parent.rmdir()


ACTIVE: ContextVar[Checkpoint | None] = ContextVar("checkpoint", default=None)
"""The folder in which a run saves its parts; None if nothing is saved."""


@contextmanager
def checkpointing(folder: Path | None) -> Iterator[Checkpoint | None]:
    """Within, save parts in a folder, and load those that it has; None: save nothing.

    The folder is made with the first part.
    """
    token = ACTIVE.set(None if folder is None else Checkpoint(folder))
    try:
        yield ACTIVE.get()
    finally:
        ACTIVE.reset(token)


def checkpointed_array(
    label: str, compute: Callable[[], NDArray[Any]], *inputs: Any
) -> NDArray[Any]:
    """Load an array from its checkpoint, or compute it and save it."""
    active = ACTIVE.get()
    if active is None:
        return compute()
    path = active.path(label, *inputs)
    saved = read_checkpoint(path)
    if saved is not None:
        return saved["part"]
    start = perf_counter()
    with active.within(path):
        array = compute()
    write_checkpoint(path, perf_counter() - start, part=np.asarray(array))
    return array


def checkpointed_result(
    label: str, compute: Callable[[], _Object], kind: type[_Object]
) -> _Object:
    """Load an object from its checkpoint, without transient fields, or compute it."""
    active = ACTIVE.get()
    if active is None:
        return compute()
    path = active.path(label)
    with suppress(InvalidInput, OSError):
        return kind.load(path)
    start = perf_counter()
    with active.within(path):
        result = compute()
    if perf_counter() - start >= MIN_CHECKPOINT_SECONDS:
        writable_folder(path.parent)
        result.save(path)
    return result


def checkpoint_path(label: str, *inputs: Any) -> Path | None:
    """The path of a part that is computed in pieces; None if nothing is saved."""
    active = ACTIVE.get()
    return None if active is None else active.path(label, *inputs)


def read_checkpoint(path: Path | None) -> dict[str, NDArray[Any]] | None:
    """The arrays of a part; None if its file is absent or broken."""
    if path is None:
        return None
    try:
        return {name: np.array(x) for name, x in _FORM.read(path)[1].items()}
    except (InvalidInput, OSError):
        return None


def write_checkpoint(path: Path | None, seconds: float, **arrays: NDArray[Any]) -> None:
    """Save the arrays of a part that took ``seconds`` to compute."""
    if path is not None and seconds >= MIN_CHECKPOINT_SECONDS:
        writable_folder(path.parent)
        text = as_json({"format": _FORM.name, "version": _FORM.version})
        _FORM.write(path, text, arrays)

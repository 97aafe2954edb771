"""Predictions of all patches: in memory, or in a file above a stated size."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol, TypeAlias, final

import numpy as np

from propopt._typing import Array, Truths
from propopt.errors import Refused
from propopt.memory import require_memory, shown_bytes


Shape: TypeAlias = tuple[int, int, int]
"""(B, N, R): patches, rows, numbers that are known of each prediction."""

IN_MEMORY: Final = 2**30
"""Bytes, 8 B N R, of predictions that are held in memory; more are in a file.

It is 10,000 patches at 13,000 rows.
"""


class Store(Protocol):
    """Where predictions go as soon as they are there."""

    @property
    def shape(self) -> Shape:
        """(B, N, R) of all that it will hold."""

    @property
    def finished(self) -> Truths:
        """Which patches were there from the start, (B,)."""

    @property
    def used(self) -> frozenset[int]:
        """Places of features that learners of these use."""

    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        """Keep what is known of some patches.

        Parameters
        ----------
        first : int
            Number of the first of them.
        known : array (b, N, R)
            Zero at rows in the patch.
        used : collection of int
            Places of features that their learners use.
        """

    def read(self, n_patches: int) -> Array:
        """What is known of the first patches, (n_patches, N, R)."""

    def close(self) -> None:
        """Nothing more is written; what was read stays."""


@final
@dataclass(frozen=True, eq=False)
class MemoryStore:
    """An array."""

    values: Array

    @property
    def shape(self) -> Shape:
        n_patches, n_rows, outputs = self.values.shape
        return n_patches, n_rows, outputs

    @property
    def finished(self) -> Truths:
        return np.zeros(self.shape[0], dtype=bool)

    @property
    def used(self) -> frozenset[int]:
        return frozenset()

    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        del used
        self.values[first : first + len(known)] = known

    def read(self, n_patches: int) -> Array:
        return self.values[:n_patches]

    def close(self) -> None:
        return None


@final
@dataclass(frozen=True, eq=False)
class FileStore:
    """A file of float64 numbers, patch after patch, mapped to memory when read.

    Parameters
    ----------
    file : binary file
        Open for reading and writing.
    shape : (B, N, R)
        Of all that it will hold.
    """

    file: IO[bytes]
    shape: Shape

    @property
    def finished(self) -> Truths:
        return np.zeros(self.shape[0], dtype=bool)

    @property
    def used(self) -> frozenset[int]:
        return frozenset()

    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        del used
        # not through the map: a full disk is an error there that nobody can catch
        self.file.seek(first * self.patch_bytes)
        self.file.write(np.ascontiguousarray(known, dtype="<f8").tobytes())
        self.file.flush()

    def read(self, n_patches: int) -> Array:
        shape = (n_patches, *self.shape[1:])
        if n_bytes_of(shape) <= IN_MEMORY:
            return self.part(0, n_patches)
        return np.memmap(self.file, dtype="<f8", mode="r", shape=shape)

    def part(self, first: int, n_patches: int) -> Array:
        """Some patches, read into memory; fewer where the file ends before."""
        self.file.seek(first * self.patch_bytes)
        data = self.file.read(n_patches * self.patch_bytes)
        whole = len(data) // self.patch_bytes
        values = np.frombuffer(data[: whole * self.patch_bytes], dtype="<f8")
        return values.astype(np.float64, copy=False).reshape(whole, *self.shape[1:])

    def sync(self) -> None:
        """Come back when the disk has it."""
        os.fsync(self.file.fileno())

    def close(self) -> None:
        self.file.close()

    @property
    def patch_bytes(self) -> int:
        """Of one patch."""
        return 8 * self.shape[1] * self.shape[2]


def n_bytes_of(shape: Shape) -> int:
    """8 B N R."""
    return 8 * math.prod(shape)


def new_store(shape: Shape) -> Store:
    """In memory, or above :data:`IN_MEMORY` in a file that nobody sees.

    Raises
    ------
    Refused
        If there is no room for it.
    """
    n_bytes = n_bytes_of(shape)
    what = f"{shape[0]} patches predict {shape[1]} rows, which"
    if n_bytes <= IN_MEMORY:
        require_memory(n_bytes, what, "fewer patches need less")
        return MemoryStore(np.zeros(shape))
    require_disk(n_bytes, Path(tempfile.gettempdir()), what)
    return FileStore(tempfile.TemporaryFile(), shape)


def require_disk(n_bytes: int, folder: Path, what: str) -> None:
    """Refuse what the disk has no room for.

    Parameters
    ----------
    n_bytes : int
        Needed.
    folder : Path
        Where.
    what : str
        That needs it, for the message.

    Raises
    ------
    Refused
        With both figures.
    """
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise Refused(
            f"{what} needs about {shown_bytes(n_bytes)} in {folder} and "
            f"{shown_bytes(free)} are free; give Minipatches a folder on another "
            "disk, or fewer patches"
        )

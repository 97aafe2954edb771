"""Predictions in a folder: what was finished is there, whatever ended the run."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from propopt._typing import Array, Truths
from propopt.errors import InvalidInput, Unwritten
from propopt.interactions.minipatches.fingerprint import Fingerprint, changed_parts
from propopt.interactions.minipatches.store import (
    FileStore,
    Shape,
    n_bytes_of,
    require_disk,
)
from propopt.output.archives import as_json
from propopt.output.files import writable_folder, written_whole


PROBLEM: Final = "problem.json"
PREDICTIONS: Final = "predictions.bin"
FINISHED: Final = "finished.txt"

_KIND: Final = {"format": "propopt minipatches", "version": 1}
_LINE: Final = re.compile(r"(\d{1,12}) (\d{1,12}) (\d{1,10}) ([\d,]*)\n")
"""First patch, the one after the last, checksum, features that were seen to be used.

A line that was cut off has no end.
"""


@final
@dataclass(frozen=True, eq=False)
class FolderStore:
    """A file of predictions, and a line for each part of it that is whole.

    Numbers come to the disk before the line that says so, so that a run that is killed,
    or a machine that stops, loses only what was on its way. A line with another
    checksum than the numbers is not believed.

    Parameters
    ----------
    folder : Path
        Its own.
    own : FileStore
        The numbers.
    finished : array of bool (B,)
        Which patches were there when it was opened.
    used : frozenset of int
        Places of features that learners of these use.
    """

    folder: Path
    own: FileStore
    finished: Truths
    used: frozenset[int]

    @classmethod
    def opened(
        cls, folder: str | Path, problem: Fingerprint, shape: Shape
    ) -> FolderStore:
        """The store of a problem, with what was finished of it.

        Parameters
        ----------
        folder : path
            Made if it is not there.
        problem : mapping of str to str
            What predictions depend on.
        shape : (B, N, R)
            Of what will be there.

        Raises
        ------
        InvalidInput
            If another problem is in it, naming what differs, or something else.
        Refused
            If the disk has no room.
        """
        place = writable_folder(folder)
        _claim(place, problem)
        path = place / PREDICTIONS
        there = path.stat().st_size if path.exists() else 0
        what = f"{shape[0]} patches predict {shape[1]} rows, which"
        require_disk(n_bytes_of(shape) - there, place, what)
        handle = os.open(
            path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666
        )
        own = FileStore(os.fdopen(handle, "r+b"), shape)
        return cls(place, own, *_whole(place / FINISHED, own))

    @property
    def shape(self) -> Shape:
        return self.own.shape

    def write(self, first: int, known: Array, used: Collection[int] = ()) -> None:
        features = ",".join(map(str, sorted(used)))
        try:
            self.own.write(first, known)
            self.own.sync()
            checksum = _checksum(known, features)
            line = f"{first} {first + len(known)} {checksum} {features}\n"
            with (self.folder / FINISHED).open("a", encoding="ascii") as lines:
                lines.write(line)
        except OSError as error:
            raise Unwritten(
                f"cannot write to {self.folder}: {error.strerror or error}; what is "
                "finished stays there"
            ) from error

    def read(self, n_patches: int) -> Array:
        return self.own.read(n_patches)

    def close(self) -> None:
        self.own.close()


def _whole(path: Path, own: FileStore) -> tuple[Truths, frozenset[int]]:
    """Patches whose numbers are those that were written, and what they use."""
    finished, used = np.zeros(own.shape[0], dtype=bool), set[int]()
    if not path.exists():
        return finished, frozenset()
    text = path.read_text(encoding="ascii", errors="replace")
    if text and not text.endswith("\n"):  # the next line is one of its own
        path.write_text(f"{text}\n", encoding="ascii", errors="replace")
    for line in text.splitlines(keepends=True):
        if found := _LINE.fullmatch(line):
            first, stop, checksum = map(int, found.groups()[:3])
            if not first < stop <= len(finished):
                continue
            known = own.part(first, stop - first)
            if len(known) == stop - first and _checksum(known, found[4]) == checksum:
                finished[first:stop] = True
                used.update(int(place) for place in found[4].split(",") if place)
    return finished, frozenset(used)


def _checksum(known: Array, features: str) -> int:
    numbers = zlib.crc32(np.ascontiguousarray(known, dtype="<f8").tobytes())
    return zlib.crc32(features.encode("ascii"), numbers)


def _claim(folder: Path, problem: Fingerprint) -> None:
    """Write what the problem is, or refuse a folder that has another."""
    path = folder / PROBLEM
    if not path.exists():
        if any(not file.name.startswith(".") for file in folder.iterdir()):
            raise InvalidInput(
                f"folder: {folder} holds other files and no {PROBLEM}; give an empty "
                "one, or a new name"
            )
        with written_whole(path) as draft:
            draft.write_text(as_json({**_KIND, "problem": dict(problem)}), "utf-8")
        return
    changed = changed_parts(_problem_in(path), problem)
    if changed:
        raise InvalidInput(
            f"folder: {folder} holds another problem: {'; '.join(changed)}; give "
            "another folder, or delete this one"
        )


def _problem_in(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict) or {key: held.get(key) for key in _KIND} != _KIND:
        raise InvalidInput(f"folder: {path} is not what minipatches write there")
    problem = held.get("problem")
    if not isinstance(problem, dict):
        raise InvalidInput(f"folder: {path} does not say whose predictions are there")
    return problem

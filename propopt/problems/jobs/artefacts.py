"""What a job writes: names tried before any work, and whole files after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from propopt.errors import InvalidInput, Unwritten
from propopt.output.files import require_free_name, writable_folder, written_whole
from propopt.output.text import printable


Writer = Callable[[str], None]


@dataclass(frozen=True)
class Artefacts:
    """The files of one run: a name, and a suffix for each.

    Parameters
    ----------
    target : Path
        Folder and name, without a suffix.
    """

    target: Path

    @classmethod
    def tried(
        cls,
        folder: str | Path,
        name: str,
        suffixes: Iterable[str],
        files: Iterable[Path],
    ) -> Artefacts:
        """Make the folder, and try all names.

        Raises
        ------
        InvalidInput
            If the folder or the names cannot be written, or are those of ``files``,
            which are read.
        """
        target = writable_folder(folder) / name
        read = tuple(files)
        for suffix in suffixes:
            require_free_name(f"{target}{suffix}", read)
        return cls(target)

    def write(self, writers: Mapping[str, Writer]) -> list[str]:
        """Write a file for each suffix; of those that cannot be written the reasons."""
        unwritten = []
        for suffix, writer in writers.items():
            try:
                writer(f"{self.target}{suffix}")
            except (Unwritten, InvalidInput) as error:  # the folder may be gone
                unwritten.append(str(error))
        return unwritten

    def in_words(self, suffixes: Iterable[str]) -> str:
        """The files that were written, on one line."""
        *others, last = suffixes
        named = f"{', '.join(others)} and {last}" if others else last
        return f"{printable(self.target)}{named}"


def write_json(content: Mapping[str, Any], path: str) -> None:
    """Write what a run was, readable by people and programs."""
    text = json.dumps(content, indent=2, default=str)
    with written_whole(path) as draft:
        draft.write_text(f"{text}\n", encoding="ascii")

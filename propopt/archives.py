"""Saved explanations as files: one JSON header, and arrays."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput


FORMAT = "propopt explanation"
VERSION = 2
READABLE = frozenset({1, VERSION})
"""Version 1 had neither units nor evaluations."""


def archive_path(path: str | Path) -> Path:
    """The path with ``.npz`` at its end; dots in the name stay."""
    given = Path(path)
    return given if given.suffix == ".npz" else given.with_name(f"{given.name}.npz")


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a saved explanation."""
    try:
        with zipfile.ZipFile(path):  # np.load takes other kinds of files too
            file = np.load(path, allow_pickle=False)
        with file:
            arrays = {name: file[name] for name in file.files}
            header = json.loads(str(arrays.pop("header")))
    except (KeyError, ValueError, zipfile.BadZipFile):
        raise InvalidInput(f"{path}: not a saved explanation") from None
    ours = isinstance(header, dict) and header.pop("format", None) == FORMAT
    if not ours or "attributions" not in arrays:
        raise InvalidInput(f"{path}: not a saved explanation")
    _check_version(header.pop("version"), path)
    return header, arrays


def _check_version(version: object, path: Path) -> None:
    if version not in READABLE:
        raise InvalidInput(
            f"{path}: written in format version {version}; this propopt reads version "
            f"{VERSION}"
        )

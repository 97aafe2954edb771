"""Files that are either the old ones or the new ones, never half of each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from propopt.errors import InvalidInput


def writable_folder(folder: str | Path) -> Path:
    """The folder, made; refused before any work if nothing can be written there.

    Raises
    ------
    InvalidInput
        If it cannot be made, or not be written to.
    """
    made = Path(folder)
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"output: cannot make the folder {made}: {error.strerror}"
        ) from None
    if not os.access(made, os.W_OK):
        raise InvalidInput(f"output: cannot write to the folder {made}")
    return made


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a path to write to; it takes the name ``path`` only when all went well.

    Raises
    ------
    InvalidInput
        If its folder is not there: none is made of a name that may be mistyped.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"{target}: there is no folder {target.parent}")
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix
    )
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o666 & ~_umask())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Files that are either the old ones or the new ones, never half of each."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from propopt.errors import InvalidInput, Unwritten


def writable_folder(folder: str | Path) -> Path:
    """The folder, made; refused before any work if nothing can be written there.

    Raises
    ------
    InvalidInput
        If it cannot be made, or not be written to.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"output: cannot make the folder {place}: {_reason(error)}"
        ) from None
    try:
        _draft(place / "draft").unlink()
    except OSError as error:
        raise InvalidInput(
            f"output: cannot write to the folder {place}: {_reason(error)}"
        ) from None
    return place


def require_free_name(path: str | Path, read: Iterable[Path] = ()) -> None:
    """Refuse, before any work, a name that no file can take, or that none should.

    Parameters
    ----------
    path : path
        What will be written.
    read : iterable of Path
        What the work starts from: not to be written over.

    Raises
    ------
    InvalidInput
        If a folder has the name, it is too long, or one of ``read`` has it.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidInput(f"output: cannot write {path}: {_reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"output: cannot write {path}: a folder is called so")
    if any(_is_same(path, other) for other in read):
        raise InvalidInput(
            f"output: cannot write {path}: it is read here; choose another folder"
        )


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a path to write to; it takes the name ``path`` only when all went well.

    Raises
    ------
    InvalidInput
        If its folder is not there: none is made of a name that may be mistyped.
    Unwritten
        If the operating system refuses, with its reason.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"{target}: there is no folder {target.parent}")
    draft: Path | None = None
    try:
        draft = _draft(target)
        yield draft
        draft.chmod(0o666 & ~_umask())
        draft.replace(target)
    except OSError as error:
        raise Unwritten(f"cannot write {target}: {_reason(error)}") from error
    finally:
        if draft is not None:
            with suppress(OSError):
                draft.unlink()


def _is_same(path: str | Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them is not there
        return False


def _draft(target: Path) -> Path:
    """An empty file beside the target, with its suffix and a short name of its own."""
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=".draft-", suffix=target.suffix
    )
    os.close(handle)
    return Path(name)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

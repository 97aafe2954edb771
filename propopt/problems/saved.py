"""Saved results of any kind, by what their files say that they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from propopt.base.errors import InvalidInput
from propopt.base.files import archive_path, format_of
from propopt.base.text import enumerated
from propopt.results.result import Result


def load_result(path: str | Path) -> Result:
    """The result that a file holds, whatever kind it is of.

    Raises
    ------
    InvalidInput
        If the file is not there, or holds none.

    Examples
    --------
    >>> import tempfile, numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.eye(3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     best.save(f"{folder}/best.npz")
    ...     same = load_result(f"{folder}/best.npz")
    >>> type(same).__name__, same.losses
    ('Explanation', {'gradient_matching': 0.0})
    """
    file = archive_path(path)
    if not file.is_file():
        raise InvalidInput(f"{path}: there is no such file; results save() to .npz")
    kinds = {kind.form.name: kind for kind in _kinds(Result)}
    name = format_of(file)
    if name not in kinds:
        known = enumerated(sorted(kinds), "or")
        raise InvalidInput(f"{path}: expected a saved result ({known})")
    return kinds[name].load(file)


def _kinds(base: Any) -> Iterator[type[Result]]:
    """All kinds of results that are saved; rooms that have some are loaded for it."""
    import propopt.explaining.trade_offs
    import propopt.interactions
    import propopt.lime
    import propopt.results.comparison  # noqa: F401

    for kind in base.__subclasses__():
        if hasattr(kind, "form"):
            yield kind
        yield from _kinds(kind)

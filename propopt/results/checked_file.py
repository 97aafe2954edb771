"""Results as files: one JSON header and arrays, checked alike on both ways."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.output.archives import Format, archive_path, as_json
from propopt.results.header import Kinds, check_header


Header: TypeAlias = Mapping[str, Any]
Arrays: TypeAlias = Mapping[str, Array]


def without_arrays(header: Header, arrays: Arrays) -> dict[str, Any]:
    """The header alone, where there are no arrays.

    Raises
    ------
    InvalidInput
        If there is one.
    """
    for name in arrays:
        raise InvalidInput(f"it also has the array {name!r}")
    return dict(header)


@final
@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """Files of one format: what cannot be loaded is not saved.

    Parameters
    ----------
    form : Format
        What the files are called, and their version.
    kinds : mapping
        What each key of the header may hold.
    fields : callable
        From such a header and arrays to the fields of a result; it raises InvalidInput
        where no result has them. By default there are no arrays, and fields are the
        header.
    """

    form: Format
    kinds: Kinds
    fields: Callable[[Header, Arrays], dict[str, Any]] = without_arrays

    def write(
        self, path: str | Path, header: Header, arrays: Arrays | None = None
    ) -> None:
        """Write a header and arrays to an ``.npz`` file.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.
        """
        target, own = archive_path(path), {} if arrays is None else arrays
        try:
            plain = json.loads(as_json(header))
            self._checked(plain, own)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.form.unsavable(target, error) from None
        self.form.write(target, plain, own)

    def read(self, path: str | Path) -> dict[str, Any]:
        """The fields of what :meth:`write` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        source = archive_path(path)
        _, header, arrays = self.form.read(source)
        try:
            return self._checked(header, arrays)
        except InvalidInput as error:
            raise self.form.refusal(source, str(error)) from None

    def _checked(self, header: Header, arrays: Arrays) -> dict[str, Any]:
        check_header(header, self.kinds)
        return self.fields(header, arrays)

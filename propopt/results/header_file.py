"""Results that are one JSON header and nothing else, as files and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from propopt.errors import InvalidInput
from propopt.output.archives import Format, archive_path, as_json
from propopt.results.header import Kinds, check_header


@final
@dataclass(frozen=True, kw_only=True)
class HeaderFile:
    """Files of one format without arrays: checked alike on both ways.

    Parameters
    ----------
    form : Format
        What the files are called, and their version.
    kinds : mapping
        What each key of the header may hold.
    """

    form: Format
    kinds: Kinds

    def write(self, path: str | Path, fields: Mapping[str, Any]) -> None:
        """Write the fields to an ``.npz`` file.

        Raises
        ------
        InvalidInput
            If the folder is not there, or a field is not what can be loaded again.
        """
        target = archive_path(path)
        try:
            header = json.loads(as_json(fields))
            check_header(header, self.kinds)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.form.unsavable(target, error) from None
        self.form.write(target, header, {})

    def read(self, path: str | Path) -> dict[str, Any]:
        """The fields that :meth:`write` wrote.

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
            check_header(header, self.kinds)
            for name in arrays:
                raise InvalidInput(f"it also has the array {name!r}")
        except InvalidInput as error:
            raise self.form.refusal(source, str(error)) from None
        return header

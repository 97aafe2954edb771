"""Where the problem files of a paper are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from propopt.base.errors import InvalidInput


@dataclass(frozen=True)
class ProblemFiles:
    """The problem files of a paper.

    Parameters
    ----------
    folder : path
        Where they are.
    """

    folder: Path

    def path(self, name: str) -> Path:
        """The file of a name without its suffix.

        Raises
        ------
        InvalidInput
            If there is none: the checkout is not whole.
        """
        file = self.folder / f"{name}.yaml"
        if not file.is_file():
            raise InvalidInput(f"there is no problem file {name}.yaml in {self.folder}")
        return file

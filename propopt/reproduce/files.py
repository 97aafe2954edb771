"""Where the problem files of a paper are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from propopt.errors import InvalidInput


_CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class ProblemFiles:
    """The problem files of a paper, in a checkout or in the installed package.

    Parameters
    ----------
    checkout : str
        Their folder in a checkout, from its root.
    installed : path
        Their folder in the installed package.
    """

    checkout: str
    installed: Path

    @property
    def folder(self) -> Path:
        """That of the checkout, if this is one."""
        checkout = _CHECKOUT / self.checkout
        return checkout if checkout.is_dir() else self.installed

    def path(self, name: str) -> Path:
        """The file of a name without its suffix.

        Raises
        ------
        InvalidInput
            If there is none: the package is not whole.
        """
        file = self.folder / f"{name}.yaml"
        if not file.is_file():
            raise InvalidInput(
                f"there is no problem file {name}.yaml, neither in {self.checkout} nor "
                "in the installed package; install propopt again"
            )
        return file

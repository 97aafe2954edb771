"""Whether a problem file may run Python code that it names."""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """Python objects that a problem file names: imported, or refused.

    Importing a module runs it. A file from elsewhere therefore imports nothing unless
    whoever runs it says so.
    """

    REFUSED = "refused"
    ALLOWED = "allowed"

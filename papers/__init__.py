"""Papers whose figures are made anew, by name.

A new one is a folder here that says what its figures are, and an entry in ``PAPERS``.
"""

from papers.registry import (
    PAPERS,
    catalogue,
    find_paper,
    read_choice,
    read_choices,
)


__all__ = ["PAPERS", "catalogue", "find_paper", "read_choice", "read_choices"]

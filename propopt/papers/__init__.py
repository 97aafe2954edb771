"""Papers whose figures are made anew, by name.

A new one is a folder here that says what its figures are, and an entry in ``PAPERS``.
"""

from propopt.papers.registry import PAPERS, find_paper


__all__ = ["PAPERS", "find_paper"]

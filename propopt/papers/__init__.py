"""Papers whose figures are made anew, by name.

A new one is a folder here that says what its figures are, and an entry.
"""

from propopt.papers.properties.paper import PROPERTIES
from propopt.reproduce.paper import Paper


__all__ = ["PAPERS"]

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (PROPERTIES,)}

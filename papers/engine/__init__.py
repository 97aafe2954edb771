"""Figures of papers made anew, with their statements checked.

This is the engine; it knows no paper. Papers are in ``papers``.
"""

from papers.engine.findings import (
    Claim,
    Finding,
    Invariant,
    Misprint,
    Refuted,
    Verdict,
)
from papers.engine.paper import Paper
from papers.engine.run import Report, reproduce_paper
from papers.engine.studies import Study


__all__ = [
    "Claim",
    "Finding",
    "Invariant",
    "Misprint",
    "Paper",
    "Refuted",
    "Report",
    "Study",
    "Verdict",
    "reproduce_paper",
]

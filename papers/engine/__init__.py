"""Figures of papers made anew, with their statements checked.

This is the engine; it knows no paper. Papers are in ``papers``.
"""

from papers.engine.findings import Claim, Finding, Invariant, Verdict
from papers.engine.paper import Paper
from papers.engine.run import Report, reproduce_paper
from papers.engine.studies import Study


__all__ = [
    "Claim",
    "Finding",
    "Invariant",
    "Paper",
    "Report",
    "Study",
    "Verdict",
    "reproduce_paper",
]

"""Figures of papers made anew, with their statements checked.

This is the engine; it knows no paper. Papers are in ``propopt.papers``.
"""

from propopt.reproduce.findings import Claim, Finding, Invariant, Verdict
from propopt.reproduce.paper import Paper
from propopt.reproduce.run import Report, reproduce_paper
from propopt.reproduce.studies import Study


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

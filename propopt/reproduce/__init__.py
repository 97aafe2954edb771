"""The paper's figures, made anew, with its statements checked.

A figure is one file in ``figures/`` and one entry in ``figures.FIGURES``.
"""

from propopt.reproduce.findings import Claim, Finding, Invariant, Verdict
from propopt.reproduce.run import Report, reproduce_paper


__all__ = ["Claim", "Finding", "Invariant", "Report", "Verdict", "reproduce_paper"]

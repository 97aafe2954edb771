"""The paper's figures, made anew, with its statements checked.

A figure is one file in ``figures/`` and one entry in ``figures.FIGURES``.
"""

from propopt.reproduce.findings import Finding
from propopt.reproduce.run import Report, reproduce_paper


__all__ = ["Finding", "Report", "reproduce_paper"]

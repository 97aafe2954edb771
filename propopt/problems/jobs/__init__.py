"""Jobs: what a file asks to be done with its subject; each is one section.

A new job is a file here, its place in ``JOBS``, and its section in ``ProblemSchema``.
"""

from __future__ import annotations

from typing import Final

from propopt.problems.jobs.explain import ExplainSection
from propopt.problems.jobs.interactions import InteractionsSection
from propopt.problems.jobs.job import (
    JobSection,
)
from propopt.problems.jobs.lime import LimeSection
from propopt.problems.jobs.sweep import SweepKeys


JOBS: Final[tuple[type[JobSection], ...]] = (
    SweepKeys,
    ExplainSection,
    LimeSection,
    InteractionsSection,
)

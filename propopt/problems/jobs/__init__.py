"""Jobs: what a file asks to be done with its subject; each is one section.

A new job is a file here, its place in ``JOBS``, and its section in ``ProblemSchema``.
"""

from __future__ import annotations

from typing import Any, Final

from propopt.problems.jobs.explain import FirstLook
from propopt.problems.jobs.interactions import InteractionsLook
from propopt.problems.jobs.job import Job
from propopt.problems.jobs.lime import LimeLook
from propopt.problems.jobs.sweep import Sweep


JOBS: Final[tuple[type[Job[Any]], ...]] = (
    Sweep,
    FirstLook,
    LimeLook,
    InteractionsLook,
)

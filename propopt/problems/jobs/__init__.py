"""Jobs: what a file asks to be done with its subject; each is one section.

A new job is a file here, its place in ``JOBS``, and its keys among the bases of
``ProblemSchema``.
"""

from __future__ import annotations

from typing import Any, Final

from propopt.problems.jobs.explain import Explain
from propopt.problems.jobs.interactions import InteractionsJob
from propopt.problems.jobs.job import Job
from propopt.problems.jobs.lime import LimeJob
from propopt.problems.jobs.sweep import Sweep


JOBS: Final[tuple[Job[Any], ...]] = (Sweep(), Explain(), LimeJob(), InteractionsJob())

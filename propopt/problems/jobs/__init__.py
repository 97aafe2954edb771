"""Jobs: what a file asks to be done with its subject; each is one section.

A new job is a file here, its place in ``JOBS``, and its keys among the bases of
``ProblemSchema``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from propopt.problems.jobs.explain import Explain
from propopt.problems.jobs.interactions import InteractionsJob
from propopt.problems.jobs.job import Job
from propopt.problems.jobs.lime import LimeJob
from propopt.problems.jobs.sweep import Sweep
from propopt.problems.sources import Faults, Source


if TYPE_CHECKING:
    from propopt.problems.file import ProblemSchema

JOBS: Final[tuple[Job, ...]] = (Sweep(), Explain(), LimeJob(), InteractionsJob())


def _and(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def check_one_job(schema: ProblemSchema, source: Source) -> None:
    """Refuse a file without a job, with two, or with keys of another.

    Raises
    ------
    ProblemFileError
        With the line of the key.
    """
    keys = [job.key for job in JOBS if getattr(schema, job.key) is not None]
    if len(keys) != 1:
        raise source.error(
            tuple(keys[-1:]),
            f"expected exactly one of {_and([job.key for job in JOBS])}, got "
            f"{_and(keys) if keys else 'none of them'}",
        )
    own = schema.job
    of_others = {n for job in JOBS if job is not own for n in job.keys.model_fields}
    faults = Faults()
    for name in sorted(of_others & schema.model_fields_set):
        with faults.noted():
            raise source.error((name,), f"has no effect with {own.key}")
    faults.refuse()

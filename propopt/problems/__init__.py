"""Problems: made of objects, or read from a file; only the file knows YAML."""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.problems.file import read_problem, read_sections
from propopt.problems.problem import Problem
from propopt.problems.subject.data import ProblemFile
from propopt.problems.subject.models import Code


__all__ = [
    "Code",
    "Problem",
    "ProblemFile",
    "read_problem",
    "read_sections",
]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.problems", __all__)

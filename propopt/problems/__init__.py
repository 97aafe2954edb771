"""Problems: made of objects, or read from a file; only the file knows YAML."""

from typing import TYPE_CHECKING

from propopt.base.words_of_others import other_words as _other_words
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
    __getattr__ = _other_words("po.problems", __all__)

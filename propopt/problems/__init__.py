"""Problems: made of objects, or read from a file; only the file knows YAML."""

from propopt.problems.file import ProblemFile, read_problem, read_sections
from propopt.problems.own_table import OwnTable
from propopt.problems.problem import Problem
from propopt.problems.schema import ProblemSchema
from propopt.problems.setting import Inductive, Setting, Transductive
from propopt.problems.subject.models.code import Code
from propopt.problems.subject.subject import Subject


__all__ = [
    "Code",
    "Inductive",
    "OwnTable",
    "Problem",
    "ProblemFile",
    "ProblemSchema",
    "Setting",
    "Subject",
    "Transductive",
    "read_problem",
    "read_sections",
]

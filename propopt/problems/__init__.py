"""Problems: made of objects, or read from a file; only the file knows YAML."""

from propopt.problems.file import (
    OwnTable,
    ProblemFile,
    ProblemSchema,
    read_problem,
    read_problem_and_table,
    read_sections,
)
from propopt.problems.jobs.explain import Explain, FirstLook
from propopt.problems.jobs.interactions import InteractionsJob, InteractionsLook
from propopt.problems.jobs.lime import LimeJob, LimeLook
from propopt.problems.jobs.sweep import Sweep, run_problem
from propopt.problems.problem import Inductive, Plan, Problem, Setting, Transductive
from propopt.problems.subject.model_sections import Code
from propopt.problems.subject.subject import Subject


__all__ = [
    "Code",
    "Explain",
    "FirstLook",
    "Inductive",
    "InteractionsJob",
    "InteractionsLook",
    "LimeJob",
    "LimeLook",
    "OwnTable",
    "Plan",
    "Problem",
    "ProblemFile",
    "ProblemSchema",
    "Setting",
    "Subject",
    "Sweep",
    "Transductive",
    "read_problem",
    "read_problem_and_table",
    "read_sections",
    "run_problem",
]

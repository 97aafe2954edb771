"""Problems: made of objects, or read from a file; only the file knows YAML."""

from propopt.problems.file import (
    ProblemFile,
    read_problem,
    read_problem_and_table,
    read_sections,
)
from propopt.problems.jobs.explain import Explain
from propopt.problems.jobs.interactions.look import InteractionsLook
from propopt.problems.jobs.interactions.run import run_interactions
from propopt.problems.jobs.interactions.section import InteractionsJob
from propopt.problems.jobs.lime.look import LimeLook
from propopt.problems.jobs.lime.run import run_limits
from propopt.problems.jobs.lime.section import LimeJob
from propopt.problems.jobs.run_explain import FirstLook, run_explain
from propopt.problems.jobs.run_sweep import run_problem
from propopt.problems.jobs.sweep import Sweep
from propopt.problems.own_table import OwnTable
from propopt.problems.plans import Plan
from propopt.problems.problem import Problem
from propopt.problems.schema import ProblemSchema
from propopt.problems.setting import Inductive, Setting, Transductive
from propopt.problems.subject.models.code import Code
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
    "run_explain",
    "run_interactions",
    "run_limits",
    "run_problem",
]

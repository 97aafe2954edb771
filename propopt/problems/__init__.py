"""Problem files: the only place that knows YAML."""

from propopt.problems.build import Problem, read_problem
from propopt.problems.schema import ProblemSchema


__all__ = ["Problem", "ProblemSchema", "read_problem"]

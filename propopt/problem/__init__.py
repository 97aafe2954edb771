"""Problem files: the only place that knows YAML."""

from propopt.problem.build import Problem, read_problem
from propopt.problem.schema import ProblemSchema


__all__ = ["Problem", "ProblemSchema", "read_problem"]

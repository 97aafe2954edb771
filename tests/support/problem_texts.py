"""A small problem file, a table of notes, and what is said of a wrong one."""

import pytest

import propopt as po
from propopt.base.errors import ProblemFileError
from propopt.problems.losses import LOSSES as SECTIONS


GRID = "{low: -1, high: 1, per_dimension: 5, dimensions: 1}"
FILE = f"""\
data:
  grid: {GRID}
function: {{name: power, degree: 3}}
objective:
  gradient_matching: 1
  pairwise_robustness:
    weight: 1
    graph: {{kind: gaussian, lengthscale: 0.5}}
sweep:
  pairwise_robustness: [0.1, 1]
"""
NOTES = """\
id,note,label,y
0,"Good food, good price.",yes,1.5
1,No good!,no,-1
2,"NA",no,0
3,"1e3",yes,2.5
4,"
",no,0
5,The food was <b>good</b> 😀,yes,3
6,the food was good,yes,2
"""
LOSSES = ", ".join(section.name for section in SECTIONS)


def complaint(path):
    """The message for a file, without the folder that it is in."""
    with pytest.raises(ProblemFileError) as caught:
        po.problems.read_problem(path)
    return str(caught.value).replace(f"{path.parent}/", "")


def instead(old, new):
    assert FILE.count(old) == 1
    return FILE.replace(old, new)


def build(path):
    """What is wrong with a file once its data are read."""
    problem = po.problems.read_problem(path).build()
    with pytest.raises(ProblemFileError) as caught:
        _ = problem.objective
    return str(caught.value).replace(f"{path.parent}/", "")

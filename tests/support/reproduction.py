"""Small sweeps like those of the paper's figures, and ways to break them."""

import dataclasses
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from papers.engine.charts import draw_fronts
from papers.engine.figure import PaperFigure
from papers.engine.files import ProblemFiles
from papers.engine.panels import Panel, Solved
from papers.engine.paper import Paper
from propopt.problems import read_problem


FILE = """\
data:
  grid: {low: -5, high: 5, per_dimension: 12, dimensions: 1}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: gaussian, lengthscale: 1}}
sweep:
  pairwise_robustness: [0.1, 1, 10]
baselines:
  - {method: gradient}
  - {method: smoothgrad, scale: [0.5, 1, 2], n_samples: 50}
  - {method: lime, scale: [0.5, 1], n_samples: 50}
"""
INDUCTIVE = """\
setting: inductive
data:
  uniform: {low: -5, high: 5, points: 60, dimensions: 2}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  kernel_robustness: {lengthscale: 1.5, jitter: 0}
inductive:
  inducing:
    - {rule: subset, counts: &counts [3, 10, 20, 40, 60]}
    - {rule: subset, with_gradients: true, counts: *counts}
    - {rule: random, counts: *counts}
    - {rule: greedy, tolerance: 1e-12, counts: *counts}
sweep: {kernel_robustness: [0.05]}
baselines:
  - {method: gradient}
"""


def read(text):
    """A problem file with this content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.yaml"
        path.write_text(text, encoding="utf-8")
        return read_problem(path).build()


@cache
def solved(text=FILE):
    """A problem file with this content, solved."""
    return swept(read(text))


def swept(problem):
    return Solved(problem, problem.sweep(problem.baselines(), progress=False))


def panel(problem, *statements, column="x³"):
    return Panel(column=column, row="D = 1", problem=problem, statements=statements)


def figure(*panels):
    return PaperFigure(
        title="A figure",
        about="What it shows.",
        panels=panels,
        draw=partial(draw_fronts, size=(2.0, 2.0)),
    )


def paper(made, recorded=None, values=None):
    """A paper with one figure, called tiny."""
    return Paper(
        name="small",
        title="A paper",
        figures={"tiny": lambda: made},
        problems=ProblemFiles(Path("none")),
        recorded=recorded,
        values=values,
    )


# broken ones


def with_baselines(result, change):
    changed = tuple(map(change, result.trade_offs.baselines))
    trade_offs = dataclasses.replace(result.trade_offs, baselines=changed)
    return dataclasses.replace(result, trade_offs=trade_offs)


def with_baseline(result, **changes):
    """The same with the first SmoothGrad changed."""
    first = result.of_method("smoothgrad")[0]
    changed = dataclasses.replace(first, **changes)
    return with_baselines(result, lambda b: changed if b is first else b)


def with_losses(result, rule, change, *, own=False):
    """The same with the losses of a rule's explanations multiplied, by their counts."""

    def changed(one):
        if one.parameters.get("rule") != rule:
            return one
        if one.parameters.get("with_gradients") is not own:
            return one
        factor = change(int(one.parameters["n_inducing"] or 0))
        losses = {name: factor * value for name, value in one.losses.items()}
        return dataclasses.replace(one, losses=losses)

    return with_baselines(result, changed)

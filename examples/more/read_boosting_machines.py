"""Read explainable boosting machines, a kind of model that propopt does not know.

    pip install -e ".[peers]"
    python examples/more/read_boosting_machines.py

A machine of InterpretML adds a score for each bin of a column, or of two. So each of
its terms is a tree that looks up the bin. A package would declare its reader as an
entry point of the group ``propopt.readers``; here it is a line of ``READERS``.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from interpret.glassbox import ExplainableBoostingRegressor
from sklearn.datasets import load_diabetes

import propopt as po
from propopt.base.errors import InexactBoxesWarning
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.sets import Tree
from propopt.structures.readers.model_reader import CONSTANT
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_nodes import Split, build_tree, sum_of_trees
from propopt.structures.registry import READERS


def read_machine(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """The intercept, and a tree for each term."""
    is_numeric = all(t in ("continuous", "ordinal") for t in model.feature_types_in_)
    if output.name != "value" or model.link_ != "identity" or not is_numeric:
        return None
    terms = zip(model.term_features_, model.term_scores_, strict=True)
    trees = [term(model.bins_, *each) for each in terms]
    return sum_of_trees(trees, float(model.intercept_), view)


def term(bins: Any, columns: tuple[int, ...], scores: np.ndarray) -> Tree | None:
    """The tree that looks up a score, one column after the other."""
    # terms of two columns have coarser bins
    cuts = [bins[k][min(len(columns), len(bins[k])) - 1] for k in columns]

    def node(state: Any) -> Split | float:
        """The bins low to high of a column; bin 0 is for NaN, the last is unused."""
        axis, low, high, rest = state
        if high - low == 1:
            axis, rest = axis + 1, rest[low]
            if axis == len(columns):
                return float(rest)
            low, high = 0, len(cuts[axis]) + 2
        if low == 0:  # numbers go left, and NaN right
            numbers, nan = (axis, 1, high, rest), (axis, 0, 1, rest)
            return Split(columns[axis], np.inf, False, numbers, nan)
        middle = (low + high) // 2
        # x is in bin 1 + #{cuts ≤ x}, and a node sends x ≤ threshold to the left
        threshold = np.nextafter(cuts[axis][middle - 2], -np.inf)
        left, right = (axis, low, middle, rest), (axis, middle, high, rest)
        return Split(columns[axis], float(threshold), False, left, right)

    return build_tree((0, 0, len(cuts[0]) + 2, scores), node)


if __name__ == "__main__":
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    machine = ExplainableBoostingRegressor(interactions=3, outer_bags=1, n_jobs=1)
    machine.fit(X, y)
    name = "interpret.ExplainableBoostingRegressor"
    READERS[name] = replace(CONSTANT, trees=read_machine)
    warnings.simplefilter("error", InexactBoxesWarning)  # strict, for its author
    best = po.explain(machine, X.iloc[:20], data=X)
    print(best)
    assert best.sampling_error == 0.0

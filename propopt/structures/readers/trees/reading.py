"""Boxes of whatever is a sum of trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from propopt.structures.boxes import Boxes, TreeSum
from propopt.structures.products import NoProducts
from propopt.structures.readers.trees.catboost import CATBOOST_TREES
from propopt.structures.readers.trees.histograms import HISTOGRAM_TREES
from propopt.structures.readers.trees.lightgbm import LIGHTGBM_TREES
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.scikit import SCIKIT_TREES
from propopt.structures.readers.trees.scores import TreeOutput, TreeRule
from propopt.structures.readers.trees.sums import SUMS, ModelSum
from propopt.structures.readers.trees.xgboost import XGBOOST_TREES


_OF_SCIKIT: Final[Mapping[type, TreeRule]] = {**SCIKIT_TREES, **HISTOGRAM_TREES}
"""Classes that are trees themselves."""

_OF_OTHERS: Final[Mapping[tuple[str, str], TreeRule]] = {
    **CATBOOST_TREES,
    **LIGHTGBM_TREES,
    **XGBOOST_TREES,
}
"""Those of libraries that are not imported, by their package and name."""


def read_boxes(model: Any, output: TreeOutput, view: View) -> Boxes | None:
    """The boxes of an output of a fitted model; None as of :func:`read_trees`."""
    found = read_trees(model, output, view)
    return None if found is None else found.boxes()


def read_trees(model: Any, output: TreeOutput, view: View) -> TreeSum | None:
    """The sum of trees that an output of a fitted model is, by the table.

    Parameters
    ----------
    model : estimator
        Fitted; of a class that is known, not of a subclass, which may predict by
        another rule.
    output : TreeOutput
        What is wanted of it.
    view : View
        What it is given.

    Returns
    -------
    TreeSum or None
        None where the output is no sum of trees, or a column that is asked for is made
        of several of the table.
    """
    kind = type(model)
    if kind in SUMS:
        return _added(SUMS[kind](model, output, view), view)
    package = kind.__module__.partition(".")[0]
    rule = _OF_SCIKIT.get(kind) or _OF_OTHERS.get((package, kind.__name__))
    return None if rule is None else rule(model, output, view)


def _added(total: ModelSum | NoProducts, view: View) -> TreeSum | None:
    """The trees of a sum of models; None if one of them has none."""
    if isinstance(total, NoProducts):
        return None
    parts = [TreeSum((), total.base, view.table)]
    for weight, model, output, seen in total.parts:
        part = read_trees(model, output, seen)
        if part is None:
            return None
        parts.append(part.scaled(weight))
    return TreeSum.sum_of(parts)

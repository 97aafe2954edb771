"""A library that nobody has heard of is a file of readers, and a line for them."""

import runpy
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from model_answers import is_read
from scipy.special import expit

import propopt as po
from propopt.base.arrays import Array
from propopt.base.errors import InexactBoxesWarning
from propopt.functions import wrap
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.fitted_model import FittedModel
from propopt.structures.readers.model_reader import CONSTANT, MarginRule
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_nodes import (
    Split,
    build_tree,
    sum_of_trees,
    tree_score,
)
from propopt.structures.registry import READERS


X = np.random.default_rng(0).normal(size=(40, 3))
NEW = np.random.default_rng(1).normal(size=(5, 3))


# ---- The library: a sum of corners as the log-odds, which only ``raw`` gives


@dataclass
class Corners:
    """Σ_j h_j [x_j > c_j] [x_{j+1} > c_{j+1}] is the log-odds of the second class."""

    heights: Array
    cuts: Array
    classes_: Array = field(default_factory=lambda: np.array(["no", "yes"]))
    n_features_in_: int = 3

    def raw(self, table: Any) -> Array:
        above = np.asarray(table) > self.cuts
        return (above & np.roll(above, -1, axis=1)) @ self.heights

    def predict_proba(self, table: Any) -> Array:
        p = expit(self.raw(table))
        return np.stack([1.0 - p, p], axis=1)


Corners.__module__ = "corners.models"


# ---- Its file


def _trees(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    score = tree_score(output, 1, logit=1.0)
    if score is None:
        return None
    _, factor = score
    trees = []
    for j, height in enumerate(factor * model.heights):
        k = (j + 1) % len(model.cuts)
        inner = Split(k, float(model.cuts[k]), False, 0.0, float(height))
        root = Split(j, float(model.cuts[j]), False, 0.0, inner)
        trees.append(build_tree(root, lambda node: node))
    return sum_of_trees(trees, 0.0, view)


CORNERS = {
    "corners.Corners": replace(
        CONSTANT, trees=_trees, margin=MarginRule("raw", {}, lambda _: 1.0)
    )
}


# ---- Its line, and what follows from it


@pytest.fixture
def model(monkeypatch):
    for name, reader in CORNERS.items():
        monkeypatch.setitem(READERS, name, reader)
    return Corners(np.array([1.0, -2.0, 0.7]), np.array([-0.3, 0.1, 0.2]))


def test_one_line_registers_a_model_of_a_library(model):
    fitted = FittedModel.of(model)
    assert fitted.is_explained_by_margin
    assert fitted.is_piecewise_constant
    function = wrap(model, data=X)
    assert str(function.quantity) == "log-odds of yes, by Corners"
    assert np.array_equal(function.value(NEW), model.raw(NEW))
    assert np.array_equal(wrap(model, "no", data=X).value(NEW), -model.raw(NEW))


def test_its_shapley_values_are_those_of_all_coalitions(model):
    result = po.explain(model, NEW, data=X, robustness=0.0)
    exact = shapley_by_definition(model.raw, NEW, X)
    room = 1e-12 * np.abs(model.heights).sum()
    assert np.allclose(result.attributions, exact, rtol=0.0, atol=room)
    assert np.abs(exact).max() > 0.1


def test_a_subclass_with_answers_of_its_own_is_not_read(model):
    class Other(Corners):
        def predict_proba(self, table: Any) -> Array:
            return 1.0 - super().predict_proba(table)

    Other.__module__ = "corners.models"
    fitted = FittedModel.of(Other(model.heights, model.cuts))
    assert fitted.margin is None
    assert not fitted.is_explained_by_margin


def wrong(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    result = _trees(model, output, view)
    return None if result is None else result.scaled(1.001)


def broken(model: Any, *_: Any) -> TreeSum | None:
    return model.stored_elsewhere


@pytest.mark.parametrize("trees", [wrong, broken])
def test_a_faulty_reader_is_not_believed_and_raises_if_warnings_are_errors(
    model, trees, monkeypatch
):
    reader = replace(CORNERS["corners.Corners"], trees=trees)
    monkeypatch.setitem(READERS, "corners.Corners", reader)
    with pytest.warns(InexactBoxesWarning, match="differ|cannot be computed") as told:
        found = po.explain(model, NEW, data=X).contributions
    if trees is broken:
        (warning,) = told
        assert "test_toy_library.py, line" in str(warning.message)
    assert found == pytest.approx(shapley_by_definition(model.raw, NEW, X))
    with warnings.catch_warnings():  # the strict mode of the page for authors
        warnings.simplefilter("error", InexactBoxesWarning)
        with pytest.raises(InexactBoxesWarning) as caught:
            po.explain(model, NEW, data=X)
    assert (trees is broken) == isinstance(caught.value.__cause__, AttributeError)


# ---- The library of an example


@pytest.mark.parametrize("interactions", [0, [(0, 1), (0, 1, 2)]])
def test_boosting_machines_are_read_as_an_example_reads_them(interactions, monkeypatch):
    library = pytest.importorskip("interpret.glassbox")
    path = Path(__file__).parents[3] / "examples/more/read_boosting_machines.py"
    read = runpy.run_path(str(path))["read_machine"]
    reader = replace(CONSTANT, trees=read)
    monkeypatch.setitem(READERS, "interpret.ExplainableBoostingRegressor", reader)
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.normal(size=(300, 3)).round(2), columns=["a", "b", "c"])
    y = table["a"] * table["b"] + table["c"]
    table.loc[::7, "b"] = np.nan
    few = {"outer_bags": 1, "max_rounds": 30, "n_jobs": 1, "random_state": 0}
    machine = library.ExplainableBoostingRegressor(interactions=interactions, **few)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of its plots
        machine.fit(table, y)
    cuts = machine.bins_[0][0]
    ends = np.concatenate([np.nextafter(cuts, -np.inf), cuts])
    rows = table.sample(len(ends), replace=True, random_state=0).assign(a=ends)
    for data in (table, rows):
        is_read(wrap(machine, data=data), data)
    counted = machine.set_params(feature_types=["nominal", "continuous", "continuous"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        counted.fit(table.assign(a=table["a"].round()), y)
    assert wrap(counted, data=table.round()).boxes is None

"""Models of trees that problem files name are read as sums of boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter
from tree_cases import EXACT, agrees, table, table_response

import propopt as po
from propopt.problems.subject.model_sections import TREES, Making


KINDS = {
    section.model_fields["kind"].annotation.__args__[0]: section for section in TREES
}
SHORT = {"hist_gradient_boosting": {"max_iter": 5}, "tree": {"max_depth": 6}}
MEANS = ("tree", "forest", "extra_trees")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", ["all", "numbers"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_models_of_trees(kind, columns, task):
    if kind == "lightgbm":
        pytest.importorskip("lightgbm")
    frame = table().drop(columns=["number"])
    y = table_response(table())
    if columns == "numbers":
        frame = frame[["size", "count", "weight"]]
    categorical = tuple(frame.columns.difference(["size", "count", "weight"]))
    settings = SHORT.get(kind, {"n_estimators": 5})
    section = TypeAdapter(KINDS[kind]).validate_python({"kind": kind, **settings})
    making = Making(folder=Path(), seed=0, task=task, categorical=categorical)
    classes = np.where(y > np.median(y), "high", "low")
    model = section.model(making).fit(frame, y if task == "regression" else classes)
    has_margin = task == "classification" and kind not in MEANS
    output = "margin" if has_margin else "auto"
    function = po.wrap(model, output=output, data=frame)
    agrees(function.boxes, function.value(frame), frame, EXACT)

"""Problem files that come with the package, and the schema of all."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem_texts import LOSSES

import propopt as po
from propopt.explaining.explainers import BASELINES
from propopt.problems.file import ProblemSchema


SHIPPED = sorted(Path(__file__).parents[2].glob("problems/**/*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_are_valid(path):
    po.problems.read_problem(path)


def test_schema_describes_the_shipped_files():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(ProblemSchema.model_json_schema())
    for path in SHIPPED:
        validator.validate(po.problems.read_problem(path).source.content)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"data": {"sklearn": "iris"}, "objective": {"sparcity": 1}})


def test_every_baseline_and_loss_can_stand_in_a_file():
    schema = str(ProblemSchema.model_json_schema())
    for method in BASELINES:
        assert f"'const': '{method}'" in schema
    for loss in LOSSES.split(", "):
        assert f"'{loss}'" in schema

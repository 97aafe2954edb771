"""Problem files that come with the package, and the schema of all."""

from __future__ import annotations

from pathlib import Path

import pytest

import propopt as po
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

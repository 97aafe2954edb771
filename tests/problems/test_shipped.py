"""Problem files and reviews that come with the package, and the schema of all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.problems.file import ProblemSchema


SHIPPED = sorted(Path(__file__).parents[2].glob("problems/**/*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_are_valid_and_the_schema_describes_them(path):
    content = po.problems.read_problem(path).source.content
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(ProblemSchema.model_json_schema())
    validator.validate(content)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"data": {"sklearn": "iris"}, "objective": {"sparcity": 1}})


# ---- reviews


FOLDER = Path(__file__).parents[2] / "problems"


def test_there_are_as_many_good_reviews_as_bad_ones_and_no_text_twice():
    reviews = pd.read_csv(FOLDER / "reviews.csv")
    assert Counter(reviews["sentiment"]) == {"good": 60, "bad": 60}
    assert reviews["text"].is_unique
    sizes = reviews["text"].str.lower().str.findall(r"\w+").map(set).map(len)
    assert sizes.between(8, 30).all()


def test_reviews_are_told_apart_and_their_limits_are_exact():
    limits, sweep = (
        po.problems.read_problem(FOLDER / f"{name}.yaml")
        for name in ("lime_text", "reviews")
    )
    for file in (limits, sweep):
        assert file.subject.score.value > 0.8
        assert file.subject.score.constant < 0.65
    coordinates = sweep.subject.coordinates
    near = np.triu(coordinates @ coordinates.T > 0.8, k=1)
    assert near.sum() >= 5  # some differ in one or two words
    result = limits.job.solve(limits, progress=False)
    assert result.is_exact
    assert result.evaluations < 500  # what is read is compared with the model
    assert all(np.abs(row.coefficients).max() > 0.1 for row in result.rows)

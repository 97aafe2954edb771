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
def test_shipped_files_are_valid(path):
    po.problems.read_problem(path)


def test_schema_describes_the_shipped_files():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(ProblemSchema.model_json_schema())
    for path in SHIPPED:
        validator.validate(po.problems.read_problem(path).source.content)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"data": {"sklearn": "iris"}, "objective": {"sparcity": 1}})


# ---- reviews


FOLDER = Path(__file__).parents[2] / "problems"
REVIEWS = pd.read_csv(FOLDER / "reviews.csv")


def subject_of(name):
    return po.problems.read_problem(FOLDER / f"{name}.yaml").subject


def test_there_are_as_many_good_reviews_as_bad_ones_and_no_text_twice():
    assert Counter(REVIEWS["sentiment"]) == {"good": 60, "bad": 60}
    assert REVIEWS["text"].is_unique
    sizes = REVIEWS["text"].str.lower().str.findall(r"\w+").map(set).map(len)
    assert sizes.between(8, 30).all()


def test_reviews_that_the_model_has_not_seen_are_told_apart():
    for name in ("lime_text", "reviews"):
        score = subject_of(name).score
        assert score.value > 0.8
        assert score.constant < 0.65


def test_some_reviews_differ_in_one_or_two_words():
    coordinates = subject_of("reviews").coordinates
    near = np.triu(coordinates @ coordinates.T > 0.8, k=1)
    assert near.sum() >= 5


def test_limits_of_the_file_are_exact():
    file = po.problems.read_problem(FOLDER / "lime_text.yaml")
    result = file.job.solve(file, progress=False)
    assert result.is_exact
    assert result.evaluations < 500  # what is read is compared with the model
    for row in result.rows:
        assert np.abs(row.coefficients).max() > 0.1

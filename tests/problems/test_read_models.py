"""Models that problem files name are read; the files that come with the package."""

from pathlib import Path

import numpy as np
import pytest

import propopt as po
from propopt.base.text import Reason
from propopt.lime.text.word_limits import checked_subsets
from propopt.problems.file import ProblemSchema
from propopt.structures.subsets.conjunctions import Enumerated


FOLDER = Path(__file__).parents[2] / "problems"
SHORT = "The soup was cold, not good. Never again, the cold soup was bad"
COUNTS, PLAIN = {"kind": "counts"}, {"kind": "tfidf", "norm": None}
LOG_ODDS = {"output": "log_odds", "target_class": "good"}
OF_WORDS = {
    "forest": {"n_estimators": 40},
    "hist_gradient_boosting": {"max_iter": 8, "min_samples_leaf": 4},
}


def function_of(model):
    data = {"csv": "reviews.csv", "text": "text", "target": "sentiment"}
    sections = {"data": data, "model": model, "lime": {}}
    file = po.problems.read_sections(sections, folder=FOLDER)
    return file.subject.function


def assert_exact(function):
    """What is read is the model on all sets of words of a document."""
    (document,) = function.documents_of([SHORT])
    read = checked_subsets(function, document)
    assert not isinstance(read, Reason), read.reason

    def values(bits):
        return function.texts_value(document.each(bits))

    every = Enumerated.of(values, document.n_words)
    expected = np.asarray(every.mean_by_size())
    assert np.ptp(expected) > 1e-3  # it is no constant
    np.testing.assert_allclose(read.mean_by_size(), expected, atol=1e-10)
    weights = np.ones((1, document.n_words + 1))
    np.testing.assert_allclose(
        read.first_moments(weights), every.first_moments(weights), atol=1e-10
    )


@pytest.mark.parametrize("vectorizer", [COUNTS, PLAIN], ids=["counts", "tfidf"])
@pytest.mark.parametrize("kind", OF_WORDS)
def test_trees_on_counts_and_on_tfidf_without_a_norm_are_exact(kind, vectorizer):
    reference = {"target_class": "good"} if kind == "forest" else LOG_ODDS
    spec = {"kind": kind, "task": "classification", "vectorizer": vectorizer}
    assert_exact(function_of({**spec, **OF_WORDS[kind], **reference}))


SHIPPED = sorted(Path(__file__).parents[2].glob("problems/**/*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_are_valid_and_the_schema_describes_them(path):
    content = po.problems.read_problem(path).source.content
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(ProblemSchema.model_json_schema())
    validator.validate(content)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"data": {"sklearn": "iris"}, "objective": {"sparcity": 1}})


def test_reviews_are_told_apart_and_their_limits_are_exact():
    paths = [FOLDER / f"{name}.yaml" for name in ("lime_text", "reviews")]
    limits, sweep = map(po.problems.read_problem, paths)
    for file in (limits, sweep):
        assert file.subject.score.value > 0.8
        assert file.subject.score.constant < 0.65
    coordinates = sweep.subject.coordinates
    neighbours = np.triu(coordinates @ coordinates.T > 0.8, k=1)
    assert neighbours.sum() >= 5  # some differ in one or two words
    result = limits.job.solve(limits, progress=False)
    assert result.is_exact
    assert result.evaluations < 500  # what is read is compared with the model
    assert all(np.abs(row.coefficients).max() > 0.1 for row in result.records)

"""Tables of problem files: columns, categories, targets, rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from problem_texts import build

import propopt as po


MODEL = """\
data: {csv: table.csv, target: y}
model: {kind: linear}
objective: {gradient_matching: 1}
"""


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] - 2 * frame["b"]
    frame["kind"] = np.where(frame["a"] > 0, "up", "down")
    frame.drop(columns="kind").to_csv(tmp_path / "table.csv", index=False)
    return frame


@pytest.mark.usefixtures("table")
def test_csv_is_read_beside_the_file(problem):
    built = problem(MODEL).build()
    assert list(built.points.columns) == ["a", "b"]
    assert sorted(built.points.index) == list(range(20))
    best = po.solve(built.objective)
    np.testing.assert_allclose(best.to_frame()["b"], -2.0, atol=1e-8)


@pytest.mark.usefixtures("table")
def test_csv_without_target_suits_a_formula(problem):
    text = MODEL.replace(", target: y", "").replace(
        "model: {kind: linear}", "function: {name: sine}"
    )
    assert list(problem(text).build().points.columns) == [
        "a",
        "b",
        "y",
    ]


def test_missing_csv(write):
    assert build(write(MODEL)) == ("file.yaml:1: data.csv: there is no file table.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: is not a CSV table: there is no header"),
        ("a,y\n", ":1: has no rows"),
        ('a,y\n"1,2\n', ":2: is not a CSV table: 1 cells under 2 headers"),
    ],
)
def test_csv_that_is_no_table(write, content, message):
    write(content, "table.csv")
    assert build(write(MODEL)).startswith(f"file.yaml:1: data.csv: table.csv{message}")


CATEGORIES = """\
data:
  csv: table.csv
  target: y
  standardize: true
  categorical: [city]
  groups: {colour: [red, blue]}
model: {kind: linear}
objective:
  gradient_matching: 1
  pairwise_robustness: {weight: 0.5, graph: {kind: knn, n_neighbors: 3}}
  smoothness: {weight: 0.1, graph: {kind: chain}}
baselines:
  - {method: gradient}
  - {method: lime, scale: [0.5], n_samples: 200}
"""


@pytest.fixture
def categories(rng, tmp_path):
    red = rng.integers(0, 2, 40)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 40),
            "city": rng.choice(["Bonn", "Oslo"], 40),
            "red": red,
            "blue": 1 - red,
        }
    )
    table["y"] = 2 * table["age"] + 3 * (table["city"] == "Oslo") - 5 * red
    table.to_csv(tmp_path / "table.csv", index=False)
    return table


def test_categories_and_groups_are_explained_as_one_feature_each(problem, categories):
    built = problem(CATEGORIES).build()
    G = built.function.gradient(built.points)
    assert list(G.columns) == ["age", "city", "colour"]
    table = categories.loc[G.index]
    np.testing.assert_allclose(G["age"], 2 * table["age"].std(ddof=0), rtol=1e-6)
    oslo = table["city"] == "Oslo"
    np.testing.assert_allclose(G["city"], 3 * (oslo - oslo.mean()), atol=1e-8)
    red = table["red"]
    np.testing.assert_allclose(G["colour"], -5 * (red - red.mean()), atol=1e-8)


@pytest.mark.usefixtures("categories")
def test_rows_of_two_cities_are_one_apart(problem):
    built = problem(CATEGORIES).build()
    coordinates, points = built.subject.coordinates, built.points
    first = points.iloc[0]
    other = (points["city"] != first["city"]) & (points["red"] == first["red"])
    age = points["age"] - first["age"]
    squares = ((coordinates - coordinates[0]) ** 2).sum(axis=1)
    np.testing.assert_allclose(squares[other], 1 + age[other] ** 2)


@pytest.mark.usefixtures("categories")
def test_a_file_with_categories_is_swept_with_its_baselines(problem):
    built = problem(CATEGORIES).build()
    result = built.sweep(built.baselines())
    assert result.certified(1e-6)
    assert [e.attributions.shape for e in result.explanations] == [(40, 3)] * 3


def test_infinite_numbers_are_refused(write):
    write("a,b,y\n1,2,3\ninf,,2\n", "table.csv")
    assert build(write(MODEL)) == (
        "file.yaml:1: data.csv: numbers must be finite, and in these columns some are "
        "infinite: a"
    )


def test_target_with_gaps(write):
    write("a,b,y\n1,2,\n1,1,2\n", "table.csv")
    assert build(write(MODEL)) == "file.yaml:1: data.target: 1 values are missing"


SKLEARN = """\
data: {sklearn: iris, explain: 30}
model: {kind: logistic, target_class: setosa}
objective: {gradient_matching: 1}
"""


def test_rows_that_are_explained_are_not_fitted(problem):
    built = problem(SKLEARN).build()
    assert built.points.shape == (30, 4)
    assert built.function.gradient_method == "exact"


def test_standardized_columns(problem):
    text = SKLEARN.replace("explain: 30", "standardize: true")
    points = problem(text).build().points
    np.testing.assert_allclose(points.mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(points.std(ddof=0), 1.0)

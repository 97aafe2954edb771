"""Laws that people give: against data, the package, quadrature, and all bits."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
import pytest
from normal_samples import least_squares, mixed_columns, with_intercept
from refusals import refusals
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge

import propopt as po
from propopt.base.arrays import Array, Indices, Values
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, TabularLaw
from propopt.lime.laws.lime_law import LimeLaw, Tilt, tilt_of_masses
from propopt.structures.products.families import Pieces


of_bins = TabularLaw.of_bins


def table():
    rng = np.random.default_rng(3)
    colours = rng.choice(["red", "blue", "grey"], 200, p=[0.5, 0.3, 0.2])
    age = rng.integers(18, 90, 200).astype(float)
    bmi = rng.normal(27.0, 4.0, 200)
    return pd.DataFrame({"age": age, "colour": colours, "bmi": bmi})


def numbers_of(law):
    """What a law has, as one gives it, by position."""
    parts = "edges", "means", "deviations", "probabilities", "ranges", "categories"
    result = {part: {} for part in parts}
    for j, column in enumerate(law.columns):
        pieces, count = column.pieces, len(column.edges) + 1
        result["probabilities"][j] = column.shares
        if column.coded:
            result["categories"][j] = pieces.mean
            continue
        result["edges"][j] = column.edges
        result["means"][j] = pieces.mean[:count]
        result["deviations"][j] = pieces.sd[:count]
        result["ranges"][j] = [pieces.low[0], pieces.high[count - 1]]
    return result


def assert_same(one, other):
    for a, b in zip(one.columns, other.columns, strict=True):
        for name in ("single", "mean", "low", "high"):
            ours, theirs = (getattr(column.pieces, name) for column in (a, b))
            np.testing.assert_array_equal(ours, theirs)
        some = ~a.pieces.single
        np.testing.assert_array_equal(a.pieces.sd[some], b.pieces.sd[some])
        np.testing.assert_array_equal(a.shares, b.shares)
        np.testing.assert_array_equal(a.edges, b.edges)
        kinds = (a.bins, a.missing, a.coded)
        assert kinds == (b.bins, b.missing, b.coded)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_bins": 7, "weights": "uniform"},
        {"n_bins": {0: [0.3, 1.0, 5.0], 2: [-1.0, 0.0]}},
        {"kernel_width": 0.3},
    ],
)
def test_the_numbers_of_data_make_the_law_of_data(settings):
    rng = np.random.default_rng(5)  # skewed, tied, missing, coded, constant, near edges
    columns = [*mixed_columns(rng), np.full(300, 0.1)]
    X = np.column_stack([*columns, rng.choice([0.1, 0.7, 1.9], size=300)])
    theirs = TabularLaw.from_data(X, categorical=[3], **settings)
    width = settings.get("kernel_width")
    ours = of_bins(**numbers_of(theirs), kernel_width=width)
    assert (ours.kernel_width, ours.labels) == (theirs.kernel_width, theirs.labels)
    assert_same(ours, theirs)


def test_what_is_not_given_is_of_data():
    X = table()
    schema = po.functions.TableSchema.of(X)
    theirs = TabularLaw.from_data(X, schema)
    for ours in (
        of_bins(data=X, categories=["colour"]),
        of_bins({"age": None}, data=X, categories={1: None}),
    ):
        assert ours.names == theirs.names == ("age", "colour", "bmi")
        assert_same(ours, theirs)


def test_a_part_is_given_and_the_rest_is_of_data():
    X = table()
    schema = po.functions.TableSchema.of(X)
    law = of_bins(
        {"age": [30, 50]},
        probabilities={"age": [0.1, 0.2, 0.7], "colour": [0.25, 0.25, 0.5]},
        ranges={"age": [18, 70]},
        categories={"colour": ["red", "grey", "blue"]},
        data=X,
    )
    age = X["age"][X["age"] <= 70]
    rows = [age[age <= 30], age[(age > 30) & (age <= 50)], age[age > 50]]
    age_bins, colour, _ = law.columns
    np.testing.assert_array_equal(age_bins.pieces.mean, [part.mean() for part in rows])
    sds = [part.std(ddof=0) for part in rows]
    np.testing.assert_allclose(age_bins.pieces.sd, sds, rtol=1e-14)
    np.testing.assert_array_equal(age_bins.pieces.low, [18.0, 30.0, 50.0])
    np.testing.assert_array_equal(age_bins.pieces.high, [30.0, 50.0, 70.0])
    np.testing.assert_array_equal(age_bins.shares, [0.1, 0.2, 0.7])
    assert colour.bins[:3] == ("= blue", "= grey", "= red")
    np.testing.assert_array_equal(colour.shares, [0.5, 0.25, 0.25, 0.0])
    rest = [
        one.reordered(np.array([2])) for one in (law, TabularLaw.from_data(X, schema))
    ]
    assert_same(*rest)
    means = {"age": [20, 40, 60]}
    (moved,) = of_bins({"age": [30, 50]}, means=means, data=X[["age"]]).columns
    np.testing.assert_array_equal(moved.pieces.mean, [20.0, 40.0, 60.0])
    shares = np.histogram(X["age"], [18, 30.5, 50.5, 90])[0] / 200
    np.testing.assert_array_equal(moved.shares, shares)


def test_categories_are_of_data_or_numbers():
    X = table()
    counts = X["colour"].value_counts(normalize=True)
    both = counts["red"] + counts["blue"]
    shares, red_and_blue = [0.2, 0.3, 0.5], {"colour": ["red", "blue"]}
    for settings, expected in (
        ({"categories": ["colour"]}, counts[["blue", "grey", "red"]]),
        (
            {"categories": ["colour"], "probabilities": {"colour": shares}},
            shares,
        ),
        (
            {"categories": red_and_blue},
            [counts["blue"] / both, 0, counts["red"] / both],
        ),
    ):
        (column,) = of_bins(data=X[["colour"]], **settings).columns
        np.testing.assert_allclose(column.shares, [*expected, 0.0], rtol=1e-13)
    (column,) = of_bins(
        categories={"colour": [5, 1, 2]}, probabilities={"colour": [0.5, 0.2, 0.3]}
    ).columns
    assert column.bins == ("= 1", "= 2", "= 5")
    np.testing.assert_array_equal(column.shares, [0.2, 0.3, 0.5])


GIVEN = {
    "edges": [[0.0], [1.0]],
    "means": [[-1.0, 1.0], [0.5, 2.0]],
    "deviations": [[1.0, 2.0], [0.1, 0.2]],
    "probabilities": [[0.5, 0.5], [0.25, 0.75]],
    "ranges": [[-4.0, 4.0], [0.0, np.inf]],
}
FORMS = {
    "arrays": (np.array, None),
    "positions": (lambda numbers: {1: numbers[1], 0: numbers[0]}, None),
    "names": (lambda numbers: dict(zip("ab", numbers, strict=True)), ("a", "b")),
    "frames": (
        lambda numbers: pd.DataFrame(np.transpose(numbers), columns=["a", "b"]),
        ("a", "b"),
    ),
}


def test_names_positions_arrays_and_frames_are_alike():
    law = of_bins(**GIVEN)
    assert law.labels.features is None
    for form, names in FORMS.values():
        other = of_bins(**{part: form(numbers) for part, numbers in GIVEN.items()})
        assert other.labels.features == names
        assert_same(law, other)
    X = pd.DataFrame({"b": [0.0], "a": [1.0]})
    labels = po.functions.TableSchema.of(X).encode(X)[1]
    assert other.aligned(labels, 2).names == ("b", "a")


def test_frames_have_columns_of_several_lengths():
    edges = pd.DataFrame({"a": [0.0, 1.0], "b": [3.0, np.nan]})
    numbers = pd.DataFrame({"a": [1.0, 1.0, 1.0], "b": [1.0, 2.0, np.nan]})
    law = of_bins(edges, means=numbers, deviations=numbers)
    assert [len(column.bins) for column in law.columns] == [3, 2]
    np.testing.assert_array_equal(law.columns[0].shares, np.full(3, 1 / 3))
    assert not law.columns[1].beyond(np.array([-1e300, 1e300])).any()


PAGE = Path(po.__file__).parents[1] / "docs" / "contributing" / "law.md"


def test_the_law_that_is_shown_has_limits_that_are_sums_over_all_bits(rng):
    """That of the page on laws."""
    blocks = PAGE.read_text(encoding="utf-8").split("```")
    (code,) = (block for block in blocks if "class SwitchedLaw" in block)
    uses = [Array, LimeLaw, Pieces, Tilt, dataclass, final, tilt_of_masses]
    names = {one.__name__: one for one in uses}
    names |= {"Indices": Indices, "Values": Values, "Array": Array, "np": np}
    exec(code.removeprefix("python\n"), names)
    baseline, row, width = np.array([0.5, -1.0, 2.0]), np.array([[1.0, 0.3, -0.7]]), 0.8
    columns = tuple(map(names["SwitchedColumn"], baseline.tolist()))
    law = names["SwitchedLaw"](columns, width)
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0)
    model.fit(X, X[:, 0] * X[:, 1] + np.abs(X[:, 2]))
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    weights = np.exp(-(1.0 - bits).sum(axis=1) / (2.0 * width**2))
    values = model.predict(np.where(bits == 1.0, row, baseline))
    result = po.lime.limits(model, row, law)
    assert result.source == "exact"
    expected = least_squares(bits, weights, values)
    np.testing.assert_allclose(with_intercept(result), expected, rtol=0, atol=1e-12)
    assert repr(law) == "SwitchedLaw(3 columns, 3 bins, kernel_width=0.8)"
    # its draws have its weights
    draws = law.draw(row, 200, rng)
    off = (1.0 - draws.bits[0]).sum(axis=1)
    np.testing.assert_allclose(draws.weights[0], np.exp(-off / (2.0 * width**2)))
    samples = np.where(draws.bits[0] == 1.0, row, baseline)
    np.testing.assert_array_equal(draws.samples[0], samples)


def test_a_missing_number_has_the_last_probability_and_they_may_miss_one_by_rounding():
    shares = [[0.3, 0.5, 0.2]]
    law = of_bins([[0.0]], means=[[-1, 1]], deviations=[[1, 1]], probabilities=shares)
    (column,) = law.columns
    assert column.bins == ("≤ 0", "> 0", "missing")
    np.testing.assert_array_equal(column.shares, shares[0])
    np.testing.assert_array_equal(
        column.bin_index(np.array([np.nan, -1.0, 3.0])), [2, 0, 1]
    )
    tenth = {"a": np.full(10, 0.1)}
    assert float(np.cumsum(tenth["a"])[-1]) != 1.0
    edges, ones = {"a": np.arange(9.0)}, {"a": np.ones(10)}
    law = of_bins(edges, means=ones, deviations=ones, probabilities=tenth)
    np.testing.assert_array_equal(law.columns[0].shares, tenth["a"])


def test_no_value_is_outside_bins_without_ends():
    moments = {"a": [2.0, 0.5, 3.0]}
    law = of_bins({"a": [0.0, 1.0]}, means=moments, deviations=moments)
    assert not law.beyond(np.array([[-1e9], [1e9]])).any()


def test_one_bin_has_no_coefficient_and_an_empty_one_without_an_end_is_finite():
    X = np.random.default_rng(0).uniform(-2.0, 3.0, (60, 2))
    model = KernelRidge(kernel="rbf", gamma=0.4, alpha=0.1)
    model.fit(X, np.sin(X[:, 0]) * X[:, 1])
    law = of_bins([[0.0], []], means=[[-1, 1], [0]], deviations=[[1, 1], [2]])
    limit = po.lime.limits(model, X[:3], law, data=X)
    assert (limit.coefficients[:, 1] == 0.0).all()
    assert (limit.coefficients[:, 0] != 0.0).all()
    law = of_bins({0: [0.0, 9.0]}, ranges={0: [-np.inf, np.inf]}, data=X)
    assert law.columns[0].shares[2] == 0.0
    assert law.columns[0].pieces.mean[2] == 9.0
    limit = po.lime.limits(model, [[1.0, 1.0], [10.0, 1.0]], law, data=X)
    assert np.isfinite(limit.coefficients).all()
    assert limit.coefficients[1, 0] == 0.0
    assert limit.beyond[:, 0].tolist() == [False, True]


def test_gaussian_laws_of_data_have_its_means_and_scales():
    X = np.random.default_rng(0).normal(size=(200, 2))
    given = GaussianLaw.of(X.mean(axis=0), X.std(axis=0), unit=X.std(axis=0))
    for one, other in zip(GaussianLaw.from_data(X).columns, given.columns, strict=True):
        np.testing.assert_allclose(one.edges, other.edges, rtol=1e-13, atol=1e-14)


def of_a(part, *numbers):
    """A change of one part of column 'a'."""
    return {part: {"a": list(numbers)}}


@pytest.mark.parametrize(("changes", "message"), refusals(__file__, "numbers of a law"))
def test_what_cannot_be_a_law_is_refused(changes, message):
    good = of_a("edges", 0.0, 1.0) | of_a("means", -1.0, 0.5, 2.0)
    good |= of_a("deviations", 1.0, 1.0, 1.0)
    of_bins(**good)
    with pytest.raises(InvalidInput, match=message):
        of_bins(**(good | eval(changes)))


EMPTY = {"ranges": {"age": [0, 99]}, "probabilities": {"age": [0.5, 0.5]}}


@pytest.mark.parametrize(("changes", "message"), refusals(__file__, "of data"))
def test_what_data_cannot_be_is_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        of_bins(data=table(), **({"categories": ["colour"]} | eval(changes)))

"""Laws of tables and of explainers of the package: bins, names, draws and notes."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from normal_samples import least_squares, mixed_columns, with_intercept
from package_laws import law_of_package
from refusals import refusals
from sklearn import datasets
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.arrays import Array, Indices, Values
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.laws.binned_columns import BinnedColumn, inner_edges_of
from propopt.lime.laws.lime_law import LimeLaw, Tilt, tilt_of_masses
from propopt.structures.products.families import Pieces


@pytest.fixture
def X(rng):
    return rng.normal(size=(120, 3))


def column_of(values, **settings):
    return TabularLaw.from_data(np.asarray(values)[:, None], **settings).columns[0]


@pytest.mark.parametrize("p", [2, 3, 4, 7, 10])
def test_statistics_are_those_of_the_rows_between_quantiles(p, rng):
    column = rng.lognormal(size=211)
    bins = BinnedColumn.of_data(column, inner_edges_of(p, column))
    ends = np.quantile(column, np.arange(p + 1) / p)
    np.testing.assert_allclose(bins.pieces.low, ends[:-1], rtol=1e-14)
    np.testing.assert_allclose(bins.pieces.high, ends[1:], rtol=1e-14)
    for b in range(p):
        above = column >= ends[0] if b == 0 else column > ends[b]
        part = column[above & (column <= ends[b + 1])]
        assert bins.shares[b] * 211 == pytest.approx(len(part), rel=1e-14)
        assert bins.pieces.mean[b] == pytest.approx(part.mean(), rel=1e-14)
        assert bins.pieces.sd[b] == pytest.approx(part.std(), rel=1e-12)


def test_bins_of_one_value_of_none_of_ties_and_of_missing_numbers(rng):
    values = np.repeat([0.1, 7.0, 9.0], [30, 3, 2])
    bins = BinnedColumn.of_data(values, np.array([0.1, 8.0]))
    assert bins.pieces.single.all()
    np.testing.assert_array_equal(bins.pieces.mean, [0.1, 7.0, 9.0])
    # edges of ties end no bin without data
    column = rng.choice([1.0, 2.0, 3.0], p=[0.1, 0.2, 0.7], size=200)
    bins = BinnedColumn.of_data(column, inner_edges_of(4, column))
    np.testing.assert_array_equal(bins.edges, [2.0])
    counts = [(column < 3).sum(), (column > 2).sum()]
    np.testing.assert_array_equal(bins.shares * 200, counts)
    # a bin without data has no share and stands at its middle
    empty = np.array([0.0, 0.5, 3.0, 4.0])
    bins = BinnedColumn.of_data(empty, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(bins.shares, [0.5, 0.0, 0.5])
    assert bins.pieces.single[1]
    assert bins.pieces.mean[1] == 1.5
    alike = column_of(empty, n_bins=[[1.0, 2.0]], weights="uniform")
    np.testing.assert_allclose(alike.shares, [0.5, 0.0, 0.5])
    # missing numbers are a bin behind the others
    column = np.array([1.0, np.nan, 2.0, 3.0, np.nan])
    bins = BinnedColumn.of_data(column, np.array([1.5]))
    np.testing.assert_array_equal(bins.shares, [0.2, 0.4, 0.4])
    assert bins.missing == 2
    assert np.isnan(bins.pieces.mean[2])
    assert bins.bins == ("≤ 1.5", "> 1.5", "missing")
    bins = BinnedColumn.of_data(np.full(3, np.nan), np.zeros(0))
    np.testing.assert_array_equal(bins.shares, [0.0, 1.0])


@pytest.mark.parametrize(
    "edges",
    [
        [1.000001, 1.000002],
        [0.1, 0.1 + 1e-15],
        [-1e-30, 1e-30],
        [123456.25, 123456.75, 2e9],
    ],
)
def test_words_tell_edges_apart(edges):
    column = np.array([*edges, edges[-1] + 1.0, edges[0] - 1.0])
    words = BinnedColumn.of_data(column, np.array(edges)).bins
    ends = [float(word.split()[-1]) for word in words[:-1]]
    assert len(set(ends)) == len(edges)
    np.testing.assert_allclose(ends, edges, atol=0.1 * np.diff(edges).min())


def test_bins_and_shares_of_continuous_columns(X):
    law = TabularLaw.from_data(X)
    assert law.kernel_width == 0.75 * np.sqrt(3)
    for column, values in zip(law.columns, X.T, strict=True):
        np.testing.assert_array_equal(column.shares, np.full(4, 0.25))
        np.testing.assert_array_equal(column.edges, np.percentile(values, [25, 50, 75]))
    values, rule = np.repeat([1.0, 2.0, 3.0], [60, 30, 10]), [[1.5, 2.5]]
    for weights, shares in (("frequency", [0.6, 0.3, 0.1]), ("uniform", [1 / 3] * 3)):
        column = column_of(values, n_bins=rule, weights=weights)
        np.testing.assert_allclose(column.shares, shares)
    law = TabularLaw.from_data(X, n_bins=[2, 10, [-0.5, 0.5]])
    assert [len(column.bins) for column in law.columns] == [2, 10, 3]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = TabularLaw.from_data(frame, n_bins={"b": 3})
    assert [len(column.bins) for column in named.columns] == [4, 3, 4]
    assert named.labels.features == ("a", "b", "c")


def test_categories_are_bins_by_schema_or_by_position():
    table = pd.DataFrame(
        {"age": [30.0, 40.0, 50.0, 60.0], "colour": ["red", "blue", "red", "red"]}
    )
    schema = po.functions.TableSchema.of(table)
    column = TabularLaw.from_data(table, schema).columns[1]
    assert column.bins[:2] == ("= blue", "= red")
    np.testing.assert_array_equal(column.shares[:2], [0.25, 0.75])
    points, _ = schema.encode(table)
    np.testing.assert_array_equal(column.bin_index(points[:, 1]), [1, 0, 1, 1])
    codes = [[1.0, 5.0], [2.0, 9.0], [3.0, 9.0]]
    column = TabularLaw.from_data(codes, categorical=[1]).columns[1]
    np.testing.assert_array_equal(column.bin_index(np.array([9.0, 5.0])), [1, 0])
    np.testing.assert_allclose(column.shares, [1 / 3, 2 / 3])


@given(st.data())
def test_every_row_of_the_data_is_in_a_bin_that_is_drawn(data):
    values = st.sampled_from([-1.5, 0.0, 0.1, 0.3, 2.0, 1e6, np.nan])
    column = np.array(data.draw(st.lists(values, min_size=1, max_size=20)))
    bins = column_of(column, n_bins=data.draw(st.integers(2, 6)))
    indices, pieces = bins.bin_index(column), bins.pieces
    counts = np.bincount(indices, minlength=len(pieces))
    np.testing.assert_allclose(bins.shares, counts / len(column))
    for x, b in zip(column, indices, strict=True):
        if pieces.single[b]:
            np.testing.assert_equal(pieces.mean[b], x)
        else:
            assert pieces.low[b] <= x <= pieces.high[b]


@pytest.mark.parametrize(("settings", "message"), refusals(__file__, "bins of a table"))
def test_settings_outside_their_range_are_refused(settings, message, X):
    with pytest.raises(InvalidInput, match=message):
        TabularLaw.from_data(X, **eval(settings))


def test_what_the_data_had_not_is_in_no_bin():
    with pytest.raises(InvalidInput, match=r"got 1\.5, which has no bin"):
        column_of([1.0, 2.0], categorical=[0]).bin_index(np.array([1.5]))


@pytest.fixture
def frame(rng):
    return pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])


@pytest.mark.parametrize("kind", ["tabular", "gaussian", "glime"])
def test_columns_in_another_order_are_put_right_by_name(kind, frame):
    bins = TabularLaw.from_data(frame, n_bins={"a": 2, "b": 3, "c": 4})
    laws = {"tabular": bins, "gaussian": GaussianLaw.from_data(frame)}
    law = (laws | {"glime": GlimeLaw(bins)})[kind]
    f = po.wrap(lambda X: np.asarray(X)[:, 0] + 2.0 * np.asarray(X)[:, 1])
    _, labels = f.read(frame[["c", "a", "b"]])
    aligned = law.aligned(labels, 3)
    assert aligned.labels.features == ("c", "a", "b")
    words = [tuple(column.bins) for column in law.columns]
    assert [tuple(column.bins) for column in aligned.columns] == [words[2], *words[:2]]
    points, labels = f.read(frame.to_numpy())  # arrays go by position
    assert law.aligned(labels, points.shape[1]) is law


def test_laws_go_by_the_names_of_columns(frame):
    law = TabularLaw.from_data(frame)
    f = po.wrap(lambda X: np.asarray(X)[:, 0])
    with pytest.raises(InvalidInput, match="'c' unexpected"):
        po.lime.limits(f, frame.rename(columns={"c": "z"}), law)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    f = po.wrap(tree.fit(frame, frame["a"] * frame["b"]))
    in_order, other = (
        po.explainers.ExactLime(law=one).explain(f, frame[:3]).attributions
        for one in (law, law.reordered(np.array([2, 0, 1])))
    )
    np.testing.assert_allclose(other, in_order, rtol=1e-12)


EVEN = np.linspace(0.0, 1.0, 401)[:, None]
TWO = np.repeat([0.0, 3.0], 50)[:, None]


@pytest.mark.parametrize(
    ("table", "rows", "settings", "expected"),
    [
        (EVEN, [0.3, 0.6001], {}, [False, False]),
        (EVEN, [1.5, -0.1, 0.3], {}, [True, True, False]),
        (EVEN, [0.0, 1.0], {}, [False, False]),  # the ends of the data
        (TWO, [1.5, 3.0], {"n_bins": [[1.0, 2.0]]}, [True, False]),  # an empty bin
        (TWO, [3.0], {"categorical": [0]}, [False]),
    ],
)
def test_values_without_samples(table, rows, settings, expected):
    law = TabularLaw.from_data(table, **settings)
    assert law.beyond(np.array(rows)[:, None])[:, 0].tolist() == expected


def test_rows_without_samples_are_counted_in_the_settings(X):
    f = po.wrap(lambda X: X[:, 0])
    rows = X[:2] + np.array([[100.0], [0.0]])
    result = po.lime.limits(f, rows, data=X, n_samples=1000)
    assert result.beyond.all(axis=1).tolist() == [True, False]
    assert result.document().settings["rows beyond samples"] == "1"


def mixed():
    columns = mixed_columns(np.random.default_rng(5))
    return np.column_stack([*columns, np.full(300, 7.0)])


@pytest.mark.parametrize(
    "settings", [{}, {"kernel_width": 0.4}, {"n_bins": 7, "weights": "uniform"}]
)
def test_draws_have_the_bits_of_their_bins_and_weights_of_the_kernel(settings):
    law = TabularLaw.from_data(mixed(), categorical=[3], **settings)
    points = mixed()[[0, 17, 150]]
    first, again, other = (
        law.draw(points, 1000, np.random.default_rng(seed), first_row=True)
        for seed in (1, 1, 2)
    )
    for j, column in enumerate(law.columns):
        row_bins = column.bin_index(points[:, j])
        for n in range(len(points)):
            bin_index = column.bin_index(first.samples[n, :, j])
            np.testing.assert_array_equal(first.bits[n, :, j], bin_index == row_bins[n])
    expected = np.exp(-0.5 * (1.0 - first.bits).sum(axis=-1) / law.kernel_width**2)
    np.testing.assert_allclose(first.weights, expected, rtol=1e-12)
    # the package has the row itself first
    np.testing.assert_array_equal(first.samples[:, 0], points)
    assert (first.bits[:, 0] == 1.0).all()
    assert (first.weights[:, 0] == 1.0).all()
    assert (first.bits[:, 1:] == 0.0).any()
    np.testing.assert_array_equal(first.samples, again.samples)
    np.testing.assert_array_equal(first.weights, again.weights)
    assert not np.array_equal(first.bits, other.bits)


# ---- explainers of the package


TABLES = {
    "breast cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "wine": datasets.load_wine,
}


@pytest.fixture(scope="module")
def package():
    return pytest.importorskip("lime.lime_tabular").LimeTabularExplainer


@pytest.mark.parametrize(("discretizer", "n_bins"), [("quartile", 4), ("decile", 10)])
@pytest.mark.parametrize("table", TABLES)
def test_the_law_of_an_explainer_is_that_of_its_data(
    package, table, discretizer, n_bins
):
    """But for 1e-11 on each deviation, and edges above which there is nothing."""
    X = TABLES[table]().data
    X = np.column_stack([X, X[:, 0] > X[:, 0].mean()])
    theirs = law_of_package(package(X, discretizer=discretizer))
    ours = TabularLaw.from_data(X, n_bins=n_bins)
    assert theirs.kernel_width == ours.kernel_width
    assert theirs.labels.features is None
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        bins = slice(len(one.edges) + 1)
        np.testing.assert_array_equal(one.edges, other.edges[: len(one.edges)])
        np.testing.assert_allclose(one.shares, other.shares[bins], rtol=1e-14)
        assert other.shares.sum() == pytest.approx(1.0, rel=1e-14)
        some = ~one.pieces.single
        for name in ("mean", "low", "high"):
            computed, read = (getattr(column.pieces, name) for column in (one, other))
            np.testing.assert_array_equal(computed[some], read[bins][some])
        sd = other.pieces.sd[bins] - 1e-11
        np.testing.assert_allclose(one.pieces.sd[some], sd[some], rtol=1e-9)


def test_one_bin_has_no_coefficient():
    X = np.random.default_rng(0).uniform(-2.0, 3.0, (60, 2))
    model = KernelRidge(kernel="rbf", gamma=0.4, alpha=0.1)
    model.fit(X, np.sin(X[:, 0]) * X[:, 1])
    law = TabularLaw.from_data(X, n_bins=[[0.0], [9.0]])
    assert [len(column.bins) for column in law.columns] == [2, 1]
    limit = po.lime.limits(model, X[:3], law, data=X)
    assert (limit.coefficients[:, 1] == 0.0).all()
    assert (limit.coefficients[:, 0] != 0.0).all()


def test_gaussian_laws_of_data_have_its_means_and_scales():
    X = np.random.default_rng(0).normal(size=(200, 2))
    given = GaussianLaw.of(X.mean(axis=0), X.std(axis=0), unit=X.std(axis=0))
    for one, other in zip(GaussianLaw.from_data(X).columns, given.columns, strict=True):
        np.testing.assert_allclose(one.edges, other.edges, rtol=1e-13, atol=1e-14)


# ---- The law of the page on laws


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

"""Laws of bins that people give: against data, the package, quadrature and draws."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge

import propopt as po
from propopt.base.arrays import Array, Points
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, TabularLaw
from propopt.lime.expectations import nearest_edges, own_widths
from propopt.lime.laws.binned_columns import BinnedColumn


def mixed() -> Points:
    """Skewed, tied, missing, coded, constant, near an edge, never there."""
    rng = np.random.default_rng(5)
    skewed = rng.lognormal(size=300)
    tied = rng.choice([0.0, 1.0, 2.0], p=[0.6, 0.1, 0.3], size=300)
    some = np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))
    codes = rng.choice([0.0, 1.0, 5.0], p=[0.5, 0.3, 0.2], size=300)
    thirds = rng.choice([0.1, 0.7, 1.9], size=300)
    return np.column_stack([skewed, tied, some, codes, np.full(300, 0.1), thirds])


def numbers_of(law: TabularLaw) -> dict[str, dict[int, Any]]:
    """What a law has, as one gives it, by position."""
    parts = "edges", "means", "deviations", "probabilities", "ranges", "categories"
    result: dict[str, dict[int, Any]] = {part: {} for part in parts}
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


def assert_same(one: BinnedColumn, other: BinnedColumn) -> None:
    for name in ("single", "mean", "low", "high"):
        ours, theirs = (getattr(column.pieces, name) for column in (one, other))
        np.testing.assert_array_equal(ours, theirs)
    some = ~one.pieces.single
    np.testing.assert_array_equal(one.pieces.sd[some], other.pieces.sd[some])
    np.testing.assert_array_equal(one.shares, other.shares)
    np.testing.assert_array_equal(one.edges, other.edges)
    own = (one.bins, one.missing, one.coded)
    assert own == (other.bins, other.missing, other.coded)


SETTINGS = {
    "quartiles": {},
    "alike": {"n_bins": 7, "weights": "uniform"},
    "edges": {"n_bins": {0: [0.3, 1.0, 5.0], 2: [-1.0, 0.0]}},
    "width": {"kernel_width": 0.3},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=list(SETTINGS))
def test_the_numbers_of_data_make_the_law_of_data(settings: dict[str, Any]) -> None:
    theirs = TabularLaw.from_data(mixed(), categorical=[3], **settings)
    ours = TabularLaw.of_bins(
        **numbers_of(theirs), kernel_width=settings.get("kernel_width")
    )
    assert (ours.kernel_width, ours.labels) == (theirs.kernel_width, theirs.labels)
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        assert_same(one, other)


def test_limits_by_the_numbers_of_data_are_those_of_data() -> None:
    X = np.delete(mixed(), 2, axis=1)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0)
    model.fit(X, X[:, 0] * X[:, 2])
    theirs = TabularLaw.from_data(X, categorical=[2])
    ours = TabularLaw.of_bins(**numbers_of(theirs))
    one, other = (po.lime.limits(model, X[:9], law) for law in (ours, theirs))
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    np.testing.assert_array_equal(one.intercept, other.intercept)
    np.testing.assert_array_equal(one.noise(), other.noise())
    assert np.abs(one.coefficients).max() > 0.1


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    colours = rng.choice(["red", "blue", "grey"], 200, p=[0.5, 0.3, 0.2])
    age = rng.integers(18, 90, 200).astype(float)
    bmi = rng.normal(27.0, 4.0, 200)
    return pd.DataFrame({"age": age, "colour": colours, "bmi": bmi})


def test_what_is_not_given_is_of_data() -> None:
    X = table()
    schema = po.TableSchema.of(X)
    theirs = TabularLaw.from_data(X, schema)
    for ours in (
        TabularLaw.of_bins(data=X, schema=schema),
        TabularLaw.of_bins(data=X, categories=["colour"]),
        TabularLaw.of_bins(data=X, categories={1: None}),
        TabularLaw.of_bins({"age": None}, data=X, schema=schema),
    ):
        assert ours.names == theirs.names == ("age", "colour", "bmi")
        for one, other in zip(ours.columns, theirs.columns, strict=True):
            assert_same(one, other)


def test_a_part_is_given_and_the_rest_is_of_data() -> None:
    X = table()
    schema = po.TableSchema.of(X)
    law = TabularLaw.of_bins(
        {"age": [30, 50]},
        probabilities={"age": [0.1, 0.2, 0.7], "colour": [0.25, 0.25, 0.5]},
        ranges={"age": [18, 70]},
        categories={"colour": ["red", "grey", "blue"]},
        data=X,
        schema=schema,
    )
    age = X["age"][X["age"] <= 70]
    rows = [age[age <= 30], age[(age > 30) & (age <= 50)], age[age > 50]]
    own = law.columns[0]
    np.testing.assert_array_equal(own.pieces.mean, [part.mean() for part in rows])
    sds = [part.std(ddof=0) for part in rows]
    np.testing.assert_allclose(own.pieces.sd, sds, rtol=1e-14)
    np.testing.assert_array_equal(own.pieces.low, [18.0, 30.0, 50.0])
    np.testing.assert_array_equal(own.pieces.high, [30.0, 50.0, 70.0])
    np.testing.assert_array_equal(own.shares, [0.1, 0.2, 0.7])
    assert law.columns[1].bins[:3] == ("= blue", "= grey", "= red")
    np.testing.assert_array_equal(law.columns[1].shares, [0.5, 0.25, 0.25, 0.0])
    assert_same(law.columns[2], TabularLaw.from_data(X, schema).columns[2])
    moved = TabularLaw.of_bins(
        {"age": [30, 50]}, means={"age": [20, 40, 60]}, data=X[["age"]]
    )
    np.testing.assert_array_equal(moved.columns[0].pieces.mean, [20.0, 40.0, 60.0])
    shares = np.histogram(X["age"], [18, 30.5, 50.5, 90])[0] / 200
    np.testing.assert_array_equal(moved.columns[0].shares, shares)


def test_categories_are_of_a_schema_or_numbers() -> None:
    X = table()
    schema = po.TableSchema.of(X[["colour"]])
    counts = X["colour"].value_counts(normalize=True)
    (own,) = TabularLaw.of_bins(schema=schema).columns
    np.testing.assert_allclose(own.shares[:3], counts[["blue", "grey", "red"]])
    (own,) = TabularLaw.of_bins(
        schema=schema, probabilities={"colour": [0.2, 0.3, 0.5]}
    ).columns
    np.testing.assert_array_equal(own.shares, [0.2, 0.3, 0.5, 0.0])
    (own,) = TabularLaw.of_bins(
        schema=schema, categories={"colour": ["red", "blue"]}
    ).columns
    both = counts["red"] + counts["blue"]
    np.testing.assert_allclose(own.shares[[0, 2]] * both, counts[["blue", "red"]])
    assert own.shares[1] == 0.0
    (own,) = TabularLaw.of_bins(
        categories={"colour": [5, 1, 2]}, probabilities={"colour": [0.5, 0.2, 0.3]}
    ).columns
    assert own.bins == ("= 1", "= 2", "= 5")
    np.testing.assert_array_equal(own.shares, [0.2, 0.3, 0.5])


GIVEN = {
    "edges": [[0.0], [1.0]],
    "means": [[-1.0, 1.0], [0.5, 2.0]],
    "deviations": [[1.0, 2.0], [0.1, 0.2]],
    "probabilities": [[0.5, 0.5], [0.25, 0.75]],
    "ranges": [[-4.0, 4.0], [0.0, np.inf]],
}


def test_names_positions_arrays_and_frames_are_alike() -> None:
    def of(form: Any, **more: Any) -> TabularLaw:
        parts = {part: form(numbers) for part, numbers in GIVEN.items()}
        return TabularLaw.of_bins(**parts, **more)

    law = of(lambda numbers: numbers)
    assert law.labels.features is None
    named = of(lambda numbers: dict(zip("ab", numbers, strict=True)))
    for other, names in (
        (of(np.array), None),
        (of(lambda numbers: {1: numbers[1], 0: numbers[0]}), None),
        (of(np.array, names=["a", "b"]), ("a", "b")),
        (named, ("a", "b")),
        (of(lambda n: pd.DataFrame(np.transpose(n), columns=["a", "b"])), ("a", "b")),
    ):
        assert other.labels.features == names
        for one, another in zip(law.columns, other.columns, strict=True):
            assert_same(one, another)
    turned = named.aligned(
        po.TableSchema.of(pd.DataFrame({"b": [0.0], "a": [1.0]})).encode(
            pd.DataFrame({"b": [0.0], "a": [1.0]})
        )[1],
        2,
    )
    assert turned.names == ("b", "a")


def test_frames_have_columns_of_several_lengths() -> None:
    edges = pd.DataFrame({"a": [0.0, 1.0], "b": [3.0, np.nan]})
    zeros = pd.DataFrame({"a": [1.0, 1.0, 1.0], "b": [1.0, 2.0, np.nan]})
    law = TabularLaw.of_bins(edges, means=zeros, deviations=zeros)
    assert [len(column.bins) for column in law.columns] == [3, 2]
    np.testing.assert_array_equal(law.columns[0].shares, np.full(3, 1 / 3))
    assert law.columns[1].extent == (-np.inf, np.inf)


def test_a_law_of_the_package_with_these_statistics_has_the_same_limits() -> None:
    lime = pytest.importorskip("lime.lime_tabular")
    columns = range(2)
    stats_of = {
        "bins": {j: GIVEN["edges"][j] for j in columns},
        "means": {j: GIVEN["means"][j] for j in columns},
        "stds": {j: GIVEN["deviations"][j] for j in columns},
        "mins": {0: [-4.0, 0.0], 1: [0.0, 1.0]},
        "maxs": {0: [0.0, 4.0], 1: [1.0, np.inf]},
        "feature_values": {j: [0, 1] for j in columns},
        "feature_frequencies": {j: GIVEN["probabilities"][j] for j in columns},
    }
    explainer = lime.LimeTabularExplainer(
        np.zeros((2, 2)), training_data_stats=stats_of, mode="regression"
    )
    theirs = TabularLaw.from_lime(explainer)
    ours = TabularLaw.of_bins(**GIVEN)
    assert ours.kernel_width == theirs.kernel_width
    model, X = machine()
    for row in ([[0.3, 0.2]], [[-1.0, 3.0]]):
        one, other = (po.lime.limits(model, row, law, data=X) for law in (ours, theirs))
        assert one.source == "exact"
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
        np.testing.assert_array_equal(one.intercept, other.intercept)
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        assert_same(one, other)


def machine() -> tuple[KernelRidge, Points]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 3.0, (60, 2))
    model = KernelRidge(kernel="rbf", gamma=0.4, alpha=0.1)
    return model.fit(X, np.sin(X[:, 0]) * X[:, 1]), X


NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)


def nodes_of(mean: float, sd: float, low: float, high: float) -> tuple[Array, Array]:
    """Points and weights of a truncated normal law, or of the one value it is."""
    if sd == 0.0:
        return np.array([mean]), np.ones(1)
    a, b = max(low, mean - 12 * sd), min(high, mean + 12 * sd)
    x = 0.5 * (a + b) + 0.5 * (b - a) * NODES
    density = WEIGHTS * np.exp(-0.5 * ((x - mean) / sd) ** 2)
    return x, density / density.sum()


def by_enumeration(
    f: Any, given: dict[str, Any], own: tuple[int, int], width: float
) -> Array:
    """Weighted least squares of f on the bits, over all cells, each by quadrature."""
    Z, y, w = [], [], []
    bins = [range(len(p)) for p in given["probabilities"]]
    for cell in itertools.product(*bins):
        points, masses, share = [], [], 1.0
        for j, b in enumerate(cell):
            ends = [given["ranges"][j][0], *given["edges"][j], given["ranges"][j][1]]
            moments = given["means"][j][b], given["deviations"][j][b]
            x, p = nodes_of(*moments, ends[b], ends[b + 1])
            points.append(x)
            masses.append(p)
            share *= given["probabilities"][j][b]
        mesh = np.stack(np.meshgrid(*points, indexing="ij"), axis=-1).reshape(-1, 2)
        bits = np.equal(cell, own).astype(float)
        Z.append([1.0, *bits])
        y.append(np.multiply.outer(*masses).ravel() @ f(mesh))
        w.append(share * np.exp(-(1.0 - bits).sum() / (2.0 * width**2)))
    root = np.sqrt(w)
    return np.linalg.lstsq(np.array(Z) * root[:, None], root * np.array(y))[0]


UNEVEN = {
    "edges": [[-0.5, 0.25], [1.0]],
    "means": [[-1.0, 0.1, 3.0], [0.5, 2.0]],  # one outside its bin
    "deviations": [[1.0, 0.0, 0.7], [0.1, 0.6]],  # and one a value
    "probabilities": [[0.5, 0.2, 0.3], [0.125, 0.875]],
    "ranges": [[-4.0, 2.5], [-np.inf, np.inf]],
}


@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("row", [[-1.0, 0.2], [0.0, 5.0], [0.25, 1.0], [9.0, -3.0]])
def test_limits_of_own_bins_are_sums_over_their_cells(
    row: list[float], width: float
) -> None:
    model, X = machine()
    law = TabularLaw.of_bins(**UNEVEN, kernel_width=width)
    own = tuple(
        int(np.sum(x > np.array(edges)))
        for x, edges in zip(row, UNEVEN["edges"], strict=True)
    )
    expected = by_enumeration(model.predict, UNEVEN, own, width)
    limit = po.lime.limits(model, [row], law, data=X)
    assert limit.source == "exact"
    found = np.append(limit.intercept, limit.coefficients[0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert np.abs(expected).max() > 0.1


def test_a_missing_number_has_the_last_probability() -> None:
    law = TabularLaw.of_bins(
        [[0.0]], means=[[-1, 1]], deviations=[[1, 1]], probabilities=[[0.3, 0.5, 0.2]]
    )
    (own,) = law.columns
    assert own.bins == ("≤ 0", "> 0", "missing")
    np.testing.assert_array_equal(own.place(np.array([np.nan, -1.0, 3.0])), [2, 0, 1])
    draws = law.draw(np.zeros((1, 1)), 40_000, np.random.default_rng(0))
    count = int(np.isnan(draws.samples).sum())
    z = (count - 8000.0) / np.sqrt(40_000 * 0.2 * 0.8)
    assert abs(z) < 5.0  # false alarms: one in 1.7 million


def test_draws_are_of_the_bins_that_are_given(rng: np.random.Generator) -> None:
    """5 shares and 4 means: |z| ≥ 5 once in 190,000 runs of the nine together."""
    law = TabularLaw.of_bins(**UNEVEN)
    n = 60_000
    samples = law.draw(np.zeros((1, 2)), n, rng).samples[0]
    for j in range(2):
        edges, (low, high) = UNEVEN["edges"][j], UNEVEN["ranges"][j]
        ends = np.array([low, *edges, high])
        assert low <= samples[:, j].min()
        assert samples[:, j].max() <= high
        place = np.searchsorted(edges, samples[:, j])
        for b, p in enumerate(UNEVEN["probabilities"][j]):
            own = samples[place == b, j]
            assert abs(len(own) - n * p) < 5.0 * np.sqrt(n * p * (1.0 - p))
            mean, sd = UNEVEN["means"][j][b], UNEVEN["deviations"][j][b]
            if sd == 0.0:
                np.testing.assert_array_equal(own, mean)
                continue
            left, right = (ends[b : b + 2] - mean) / sd
            theory = stats.truncnorm(left, right, loc=mean, scale=sd)
            error = theory.std() / np.sqrt(len(own))
            assert abs(own.mean() - theory.mean()) < 5.0 * error


def test_laws_of_users_do_all_that_laws_do(tmp_path: Any) -> None:
    X = table().assign(colour=0.0).to_numpy()
    frame = pd.DataFrame(X, columns=["age", "colour", "bmi"])
    model = GradientBoostingRegressor(n_estimators=10, random_state=0)
    model.fit(frame, X[:, 0] * X[:, 2])
    law = TabularLaw.of_bins(
        {"bmi": [25, 30], "age": [40, 65]},
        means={"bmi": [22, 27, 34], "age": [30, 50, 75]},
        deviations={"bmi": [2, 2, 3], "age": [8, 8, 6]},
        categories={"colour": [0]},
        kernel_width=0.8,
    )
    assert repr(law) == "TabularLaw(3 columns, 7 bins, kernel_width=0.8)"
    limit = po.lime.limits(model, frame[:4], law, data=frame)
    assert limit.source == "exact"
    assert np.isfinite(limit.noise()).all()
    assert (limit.coefficients[:, 1] == 0.0).all()
    assert limit.law_in_words == repr(law)
    assert repr(limit.diagnose())
    assert limit.path(0).sign_changes.statement
    limit.save(tmp_path / "limit")
    back = po.lime.LimeExplanation.load(tmp_path / "limit")
    np.testing.assert_array_equal(back.coefficients, limit.coefficients)
    assert back.law_in_words == limit.law_in_words
    wrapped = po.lime.limits(model, frame[:4], po.lime.GlimeLaw(law), data=frame)
    np.testing.assert_allclose(
        wrapped.coefficients, limit.coefficients, rtol=1e-12, atol=1e-12
    )
    smooth = po.lime.limits(model, frame[:4], po.lime.SmoothLaw.of(law), data=frame)
    assert np.isfinite(smooth.coefficients).all()
    baseline = po.explainers.ExactLime(law=law)
    found = baseline.explain(po.wrap(model), frame[:4])
    np.testing.assert_array_equal(found.attributions, limit.coefficients)
    baseline = po.explainers.Lime(law=law, n_samples=2000, ridge=1.0)
    assert baseline.parameters["law"] == repr(law)


GOOD = {
    "edges": {"a": [0.0, 1.0]},
    "means": {"a": [-1.0, 0.5, 2.0]},
    "deviations": {"a": [1.0, 1.0, 1.0]},
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": {"a": [1.0, 0.0]}}, "edges of 'a': edges have to increase"),
        ({"edges": {"a": [0.0, 0.0]}}, "edges have to increase"),
        ({"edges": {"a": [0.0, np.inf]}}, "edges of 'a': 1 of 2 values are not finite"),
        ({"edges": {"a": ["x", "y"]}}, "edges of 'a': expected numbers"),
        ({"means": None}, "means: column 'a' has none; .* data"),
        ({"means": None, "deviations": None}, "means and deviations: column 'a' has"),
        ({"means": {"a": [1.0]}}, "means of 'a': .* 3 bins, got 1"),
        ({"means": {"b": [1.0]}}, r"means: no column 'b'.*there are 'a'"),
        ({"means": {"a": [0, 1, np.nan]}}, "means of 'a': 1 of 3 .* not finite"),
        ({"deviations": {"a": [1, -1, 1]}}, "deviations of 'a': .* negative"),
        ({"deviations": {"a": [1, 1, 0]}, "means": {"a": [0, 0, 0]}}, "outside their"),
        ({"probabilities": {"a": [0.5, 0.5]}}, "probabilities of 'a': .* 3 bins"),
        ({"probabilities": {"a": [0.3, 0.3, 0.3]}}, "they sum to 0.8999"),
        ({"probabilities": {"a": [0.4, 0.3, 0.3 + 1e-13]}}, "and not to 1"),
        ({"probabilities": {"a": [1.5, 0.0, -0.5]}}, "1 of 3 values are negative"),
        ({"ranges": {"a": [0.5, 3.0]}}, "edges, 0 to 1, are not within the range"),
        ({"ranges": {"a": [-1.0, 1.0]}}, "are not within the range, -1 to 1"),
        ({"ranges": {"a": [3.0, -3.0]}}, "the lowest and the highest number"),
        ({"ranges": {"a": [0.0, 3.0]}}, "not 0 in a bin of one value"),
        ({"ranges": {"a": [1.0]}}, "ranges of 'a': expected the lowest"),
        ({"ranges": {"a": [np.nan, 3.0]}}, "ranges of 'a': expected the lowest"),
        ({"means": {"a": [0, 0, 0], 0: [1, 1, 1]}}, "'a' is given more than once"),
        ({"names": ["a", "a"]}, "names: columns appear more than once: 'a'"),
        ({"names": ["b"]}, "edges: no column 'a'"),
        ({"names": ["a", "c"]}, "edges: column 'c' has none, nor categories"),
        ({"edges": None}, "edges: no column has any, nor categories"),
        ({"edges": 3}, "edges: expected one for each column, got 3"),
        ({"means": [[1.0]] * 2}, "means: .* each of 1 columns, got 2"),
        ({"categories": {"a": [0]}}, "edges: column 'a' has categories; leave them"),
        ({"categories": {"c": ["red"]}}, "'red'; a schema, or data"),
        ({"categories": ["c"]}, "categories: column 'c' has none; give them, or data"),
        ({"categories": "a"}, "a list of columns, got 'a'"),
        ({"categories": {"c": [1, 1]}}, "categories of 'c': one appears twice"),
        ({"kernel_width": -1.0}, ">= 0"),
    ],
)
def test_what_cannot_be_a_law_is_refused(changes: dict[str, Any], message: str) -> None:
    TabularLaw.of_bins(**GOOD)
    with pytest.raises(InvalidInput, match=message):
        TabularLaw.of_bins(**(GOOD | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": {"age": [5.0]}}, "not within the range of data, 18 to"),
        (
            {
                "edges": {"age": [5.0]},
                "ranges": {"age": [0, 99]},
                "probabilities": {"age": [0.5, 0.5]},
            },
            "no row of data is in the bin '≤ 5' of column 'age'",
        ),
        (
            {"ranges": {"age": [200, 300]}, "edges": {"age": [250]}},
            "no row of data is within",
        ),
        ({"names": ["a", "b", "c"]}, "names: the table has names of its own"),
        ({"categories": {"colour": ["pink"]}}, "there is no 'pink'"),
        ({"edges": {"agee": [30]}}, "did you mean 'age'"),
    ],
)
def test_what_data_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    X = table()
    TabularLaw.of_bins(data=X, schema=po.TableSchema.of(X))
    with pytest.raises(InvalidInput, match=message):
        TabularLaw.of_bins(data=X, **({"categories": ["colour"]} | changes))


def test_probabilities_may_miss_one_by_rounding_alone() -> None:
    tenth = {"a": np.full(10, 0.1)}
    assert float(np.cumsum(tenth["a"])[-1]) != 1.0
    edges, ones = {"a": np.arange(9.0)}, {"a": np.ones(10)}
    law = TabularLaw.of_bins(edges, means=ones, deviations=ones, probabilities=tenth)
    np.testing.assert_array_equal(law.columns[0].shares, tenth["a"])


def test_bins_without_ends_are_as_wide_as_their_law() -> None:
    """Else each value of an end bin would be at its edge."""
    edges, moments = {"a": [0.0, 1.0]}, {"a": [2.0, 0.5, 3.0]}
    law = TabularLaw.of_bins(edges, means=moments, deviations=moments)
    (own,) = law.columns
    assert own_widths(own, np.array([-9.0, 0.5, 9.0])).tolist() == [2.0, 1.0, 3.0]
    distance, edge, _ = nearest_edges(own, np.array([7.0]))[:, 0]
    assert (distance, edge) == (2.0, 1.0)
    assert law.notes(np.array([[-1e9], [1e9]])) == ()


def test_one_bin_has_no_coefficient() -> None:
    model, X = machine()
    law = TabularLaw.of_bins(
        [[0.0], []], means=[[-1, 1], [0]], deviations=[[1, 1], [2]]
    )
    limit = po.lime.limits(model, X[:3], law, data=X)
    assert (limit.coefficients[:, 1] == 0.0).all()
    assert (limit.coefficients[:, 0] != 0.0).all()


def test_gaussian_laws_have_means_and_scales_by_name() -> None:
    plain = GaussianLaw.of([1.0, 2.0], [3.0, 4.0], 1.0, [[0.0], 3], unit=[3.0, 5.0])
    named = GaussianLaw.of(
        pd.Series({"a": 1.0, "b": 2.0}),
        {"b": 4.0, "a": 3.0},
        1.0,
        {"a": [0.0], "b": 3},
        unit={1: 5.0, 0: 3.0},
    )
    assert named.labels.features == ("a", "b")
    assert plain.labels.features is None
    for one, other in zip(plain.columns, named.columns, strict=True):
        assert (one.mean, one.scale, one.unit) == (other.mean, other.scale, other.unit)
        np.testing.assert_array_equal(one.edges, other.edges)
    X = np.random.default_rng(0).normal(size=(200, 2))
    data = GaussianLaw.from_data(X)
    own = GaussianLaw.of(X.mean(axis=0), X.std(axis=0), unit=X.std(axis=0))
    for one, other in zip(data.columns, own.columns, strict=True):
        np.testing.assert_allclose(one.edges, other.edges, rtol=1e-13, atol=1e-14)
    for wrong, message in (
        ({"scale": {"a": 1.0}}, "scale: none is given for 'b'"),
        ({"scale": {"a": 1.0, "c": 1.0}}, "scale: no column 'c'"),
        ({"scale": {"a": 1.0, "b": -1.0}}, "scale: .*>= 0"),
        ({"mean": {"a": 1.0, "b": np.inf}}, "mean: .* not finite"),
    ):
        settings: dict[str, Any] = {"mean": {"a": 1.0, "b": 2.0}, "scale": 1.0} | wrong
        with pytest.raises(InvalidInput, match=message):
            GaussianLaw.of(**settings)


def test_an_empty_bin_without_an_end_is_never_drawn_and_has_finite_limits() -> None:
    model, X = machine()
    law = TabularLaw.of_bins({0: [0.0, 9.0]}, ranges={0: [-np.inf, np.inf]}, data=X)
    own = law.columns[0]
    assert own.shares[2] == 0.0
    assert own.pieces.mean[2] == 9.0
    limit = po.lime.limits(model, [[1.0, 1.0], [10.0, 1.0]], law, data=X)
    assert np.isfinite(limit.coefficients).all()
    assert limit.coefficients[1, 0] == 0.0
    assert "never drawn" in limit.notes[0]

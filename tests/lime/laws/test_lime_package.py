"""Laws of explainers of the package, and explainers of laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import datasets

import propopt as po
from propopt.base.arrays import Points
from propopt.base.errors import InvalidInput, Refused
from propopt.lime.laws.binned_columns import BinnedColumn


lime = pytest.importorskip("lime.lime_tabular")

TABLES = {
    "breast cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "wine": datasets.load_wine,
}


def mixed() -> Points:
    rng = np.random.default_rng(3)
    codes = rng.choice([0.0, 1.0, 4.0], p=[0.5, 0.3, 0.2], size=150)
    tied = rng.choice([0.0, 1.0], p=[0.9, 0.1], size=150)
    return np.column_stack([rng.normal(size=150), codes, tied, np.full(150, 0.3)])


def assert_same(one: BinnedColumn, other: BinnedColumn) -> None:
    sampled = one.shares > 0.0
    np.testing.assert_array_equal(other.shares[sampled], one.shares[sampled])
    np.testing.assert_array_equal(other.shares[len(one.shares) :], 0.0)
    for name in ("single", "mean"):
        ours, theirs = (getattr(column.pieces, name) for column in (one, other))
        np.testing.assert_array_equal(ours[sampled], theirs[: len(sampled)][sampled])
    truncated = np.flatnonzero(sampled & ~one.pieces.single)
    for name in ("sd", "low", "high"):
        ours, theirs = (getattr(column.pieces, name) for column in (one, other))
        np.testing.assert_array_equal(ours[truncated], theirs[truncated])


@pytest.mark.parametrize("discretizer", ["quartile", "decile"])
@pytest.mark.parametrize("table", TABLES)
def test_the_law_of_an_explainer_is_that_of_its_data(
    table: str, discretizer: str
) -> None:
    X = TABLES[table]().data
    explainer = lime.LimeTabularExplainer(X, discretizer=discretizer)
    theirs = po.lime.TabularLaw.from_lime(explainer)
    ours = po.lime.TabularLaw.from_data(X, n_bins=discretizer, package=True)
    assert theirs.kernel_width == ours.kernel_width
    assert theirs.labels.features is None
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        np.testing.assert_array_equal(one.edges, other.edges)
        np.testing.assert_allclose(one.shares, other.shares, rtol=1e-14)
        assert one.bins == other.bins
        np.testing.assert_array_equal(one.pieces.mean, other.pieces.mean)


def test_categories_names_and_widths_of_an_explainer_are_read() -> None:
    X = mixed()
    explainer = lime.LimeTabularExplainer(
        X,
        feature_names=["a", "b", "c", "d"],
        categorical_features=[1],
        categorical_names={1: {0: "red", 1: "blue", 4: "grey"}},
        kernel_width=1.7,
    )
    law = po.lime.TabularLaw.from_lime(explainer)
    assert law.kernel_width == 1.7
    assert law.labels.features == ("a", "b", "c", "d")
    assert law.columns[1].bins == ("= red", "= blue", "= grey")
    values, counts = np.unique(X[:, 1], return_counts=True)
    np.testing.assert_array_equal(law.columns[1].pieces.mean, values)
    np.testing.assert_allclose(law.columns[1].shares, counts / 150)
    assert law.columns[3].pieces.single[0]
    assert abs(law.columns[3].pieces.mean[0]) < 1e-4  # the package's, and not 0.3


@pytest.mark.parametrize("package", [False, True])
def test_a_law_becomes_an_explainer_and_comes_back(package: bool) -> None:
    law = po.lime.TabularLaw.from_data(
        mixed(), categorical=[1], n_bins=5, weights="uniform", package=package
    )
    back = po.lime.TabularLaw.from_lime(law.to_lime())
    assert back.kernel_width == law.kernel_width
    for one, other in zip(law.columns, back.columns, strict=True):
        assert_same(one, other)


def drawn_by(explainer: Any, row: Points, n_samples: int) -> Points:
    """What the package asks f about, but for the row itself."""
    drawn: list[Points] = []

    def recorded(samples: Points) -> Points:
        drawn.append(samples)
        return samples[:, 0]

    explainer.explain_instance(row, recorded, num_samples=n_samples)
    return drawn[0][1:]


@pytest.mark.parametrize("origin", ["data", "law"])
def test_the_package_draws_from_the_law(origin: str) -> None:
    """|z| < 5 for 8 shares and 4 means in 2 cases: false once in 70,000 seeds."""
    X = mixed()
    law = po.lime.TabularLaw.from_data(X, categorical=[1], package=origin == "data")
    explainer = (
        lime.LimeTabularExplainer(
            X, mode="regression", categorical_features=[1], random_state=1
        )
        if origin == "data"
        else law.to_lime(random_state=1)
    )
    samples = drawn_by(explainer, X[0], 20_000)
    for j, column in enumerate(law.columns):
        own = column.place(X[:1, j])[0]
        share = column.shares[own]
        spread = np.sqrt(share * (1 - share) / len(samples))
        if not column.pieces.single.all() or column.coded:
            bits = column.place(samples[:, j]) == own
            assert abs(bits.mean() - share) <= 5 * spread
        means = column.pieces.mean.copy()
        means[~column.pieces.single] = column.pieces.normals.means
        error = samples[:, j].std() / np.sqrt(len(samples))
        assert abs(samples[:, j].mean() - column.shares @ means) <= 5 * error + 1e-12


def test_what_the_package_cannot_draw_is_refused() -> None:
    X = np.where(np.arange(20) % 5 == 0, np.nan, np.arange(20.0))[:, None]
    with pytest.raises(Refused, match="missing in 'x0'"):
        po.lime.TabularLaw.from_data(X).to_lime()
    law = po.lime.TabularLaw.from_data(mixed(), kernel_width=[1.0, 1.0, 1.0, 2.0])
    with pytest.raises(Refused, match="widths of their own"):
        law.to_lime()


def test_what_is_no_binned_explainer_is_refused() -> None:
    with pytest.raises(InvalidInput, match="got dict"):
        po.lime.TabularLaw.from_lime({})
    plain = lime.LimeTabularExplainer(mixed(), discretize_continuous=False)
    with pytest.raises(Refused, match="without bins"):
        po.lime.TabularLaw.from_lime(plain)
    own = lime.LimeTabularExplainer(
        mixed(), kernel=lambda d, kernel_width: np.exp(-d / kernel_width)
    )
    with pytest.raises(Refused, match="kernel of its own"):
        po.lime.TabularLaw.from_lime(own)

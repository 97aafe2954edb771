"""Laws of explainers of the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import datasets

import propopt as po
from propopt.base.arrays import Points
from propopt.base.errors import InvalidInput, Refused


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


@pytest.mark.parametrize("discretizer", ["quartile", "decile"])
@pytest.mark.parametrize("table", TABLES)
def test_the_law_of_an_explainer_is_that_of_its_data(
    table: str, discretizer: str
) -> None:
    """But for 1e-11 on each deviation, and edges above which there is nothing."""
    X = TABLES[table]().data
    X = np.column_stack([X, X[:, 0] > X[:, 0].mean()])
    explainer = lime.LimeTabularExplainer(X, discretizer=discretizer)
    theirs = po.lime.TabularLaw.from_lime(explainer)
    ours = po.lime.TabularLaw.from_data(X, n_bins=discretizer)
    assert theirs.kernel_width == ours.kernel_width
    assert theirs.labels.features is None
    for one, other in zip(ours.columns, theirs.columns, strict=True):
        bins = slice(len(one.edges) + 1)
        np.testing.assert_array_equal(one.edges, other.edges[: len(one.edges)])
        np.testing.assert_allclose(one.shares, other.shares[bins], rtol=1e-14)
        assert other.shares.sum() == pytest.approx(1.0, rel=1e-14)
        some = ~one.pieces.single
        for name in ("mean", "low", "high"):
            own, read = (getattr(column.pieces, name) for column in (one, other))
            np.testing.assert_array_equal(own[some], read[bins][some])
        sd = other.pieces.sd[bins] - 1e-11
        np.testing.assert_allclose(one.pieces.sd[some], sd[some], rtol=1e-9)


def test_a_bin_of_one_end_is_drawn_as_the_package_draws_it() -> None:
    X = np.column_stack([np.full(40, 7.0), np.repeat([0.3, 1.0], 20)])
    explainer = lime.LimeTabularExplainer(X)
    law = po.lime.TabularLaw.from_lime(explainer)
    drawn = 0
    for j, column in enumerate(law.columns):
        for b in np.flatnonzero(column.pieces.single & (column.shares > 0.0)):
            values = explainer.discretizer.get_undiscretize_values(j, np.array([b]))
            assert values[0] == column.pieces.mean[b]
            assert abs(values[0]) < 1e-4  # a z-score, not 7 or 0.3
            drawn += 1
    assert drawn >= 2


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


def drawn_by(explainer: Any, row: Points, n_samples: int) -> Points:
    """What the package asks f about, but for the row itself."""
    drawn: list[Points] = []

    def recorded(samples: Points) -> Points:
        drawn.append(samples)
        return samples[:, 0]

    explainer.explain_instance(row, recorded, num_samples=n_samples)
    return drawn[0][1:]


def test_the_package_draws_from_the_law() -> None:
    """|z| < 5 for 4 shares and 4 means: false once in 200,000 seeds."""
    X = mixed()
    explainer = lime.LimeTabularExplainer(
        X, mode="regression", categorical_features=[1], random_state=1
    )
    law = po.lime.TabularLaw.from_lime(explainer)
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

"""Laws of tables: bins, shares, names and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.lime.laws.lime_law import default_kernel_width


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(120, 3))


def test_bins_of_continuous_columns_are_alike(X: np.ndarray) -> None:
    law = po.lime.TabularLaw.from_data(X)
    assert law.kernel_width == 0.75 * np.sqrt(3)
    for column, values in zip(law.columns, X.T, strict=True):
        np.testing.assert_array_equal(column.shares, np.full(4, 0.25))
        np.testing.assert_array_equal(column.edges, np.percentile(values, [25, 50, 75]))


def test_shares_are_frequencies_or_alike() -> None:
    column = np.repeat([1.0, 2.0, 3.0], [60, 30, 10])[:, None]
    rule = [[1.5, 2.5]]
    law = po.lime.TabularLaw.from_data(column, n_bins=rule)
    np.testing.assert_allclose(law.columns[0].shares, [0.6, 0.3, 0.1])
    law = po.lime.TabularLaw.from_data(column, n_bins=rule, weights="uniform")
    np.testing.assert_allclose(law.columns[0].shares, np.full(3, 1 / 3))


def test_bins_without_data_have_no_share_where_all_are_alike() -> None:
    column = np.array([[0.0], [0.5], [3.0], [4.0]])
    law = po.lime.TabularLaw.from_data(column, n_bins=[[1.0, 2.0]], weights="uniform")
    np.testing.assert_allclose(law.columns[0].shares, [0.5, 0.0, 0.5])


def test_each_column_may_have_bins_of_its_own(X: np.ndarray) -> None:
    law = po.lime.TabularLaw.from_data(X, n_bins=[2, "decile", [-0.5, 0.5]])
    assert [len(column.bins) for column in law.columns] == [2, 10, 3]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = po.lime.TabularLaw.from_data(frame, n_bins={"b": 3})
    assert [len(column.bins) for column in named.columns] == [4, 3, 4]
    assert named.labels.features == ("a", "b", "c")


def test_categories_of_a_schema_are_bins() -> None:
    table = pd.DataFrame(
        {"age": [30.0, 40.0, 50.0, 60.0], "colour": ["red", "blue", "red", "red"]}
    )
    schema = po.TableSchema.of(table)
    law = po.lime.TabularLaw.from_data(table, schema)
    assert law.columns[1].bins[:2] == ("= blue", "= red")
    np.testing.assert_array_equal(law.columns[1].shares[:2], [0.25, 0.75])
    points, _ = schema.encode(table)
    np.testing.assert_array_equal(law.columns[1].place(points[:, 1]), [1, 0, 1, 1])


def test_categories_of_an_array_are_declared_by_position() -> None:
    X = np.array([[1.0, 5.0], [2.0, 9.0], [3.0, 9.0]])
    law = po.lime.TabularLaw.from_data(X, categorical=[1])
    np.testing.assert_array_equal(law.columns[1].place(np.array([9.0, 5.0])), [1, 0])
    np.testing.assert_allclose(law.columns[1].shares, [1 / 3, 2 / 3])


@given(st.data())
def test_every_row_of_the_data_is_in_a_bin_that_is_drawn(data: st.DataObject) -> None:
    values = st.sampled_from([-1.5, 0.0, 0.1, 0.3, 2.0, 1e6, np.nan])
    column = np.array(data.draw(st.lists(values, min_size=1, max_size=20)))
    n_bins = data.draw(st.integers(2, 6))
    law = po.lime.TabularLaw.from_data(column[:, None], n_bins=n_bins)
    indices, pieces = law.columns[0].place(column), law.columns[0].pieces
    counts = np.bincount(indices, minlength=len(pieces))
    np.testing.assert_allclose(law.columns[0].shares, counts / len(column))
    for x, b in zip(column, indices, strict=True):
        if pieces.single[b]:
            np.testing.assert_equal(pieces.mean[b], x)
        else:
            assert pieces.low[b] <= x <= pieces.high[b]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bins": 1}, "single bin"),
        ({"n_bins": True}, "n_bins"),
        ({"n_bins": "quartiles"}, "did you mean 'quartile'"),
        ({"n_bins": [2, 3]}, "each of 3 columns"),
        ({"n_bins": [2, 3, [2.0, 1.0]]}, "increase"),
        ({"n_bins": {"x9": 3}}, "no column 'x9'"),
        ({"weights": "even"}, "'frequency' or 'uniform'"),
        ({"kernel_width": 0.0}, "> 0"),
        ({"kernel_width": -1.0}, ">= 0"),
        ({"kernel_width": "papers"}, "'paper'"),
        ({"kernel_width": [1.0, 2.0, 0.0]}, "expected a number"),
        ({"categorical": [3]}, "from 0 to 2"),
    ],
)
def test_settings_outside_their_range_are_refused(
    settings: dict[str, object], message: str, X: np.ndarray
) -> None:
    with pytest.raises(InvalidInput, match=message):
        po.lime.TabularLaw.from_data(X, **settings)  # type: ignore[arg-type]


def test_what_the_data_had_not_is_in_no_bin(X: np.ndarray) -> None:
    law = po.lime.TabularLaw.from_data(X)
    with pytest.raises(InvalidInput, match="missing"):
        law.columns[0].place(np.array([0.0, np.nan]))
    coded = po.lime.TabularLaw.from_data([[1.0], [2.0]], categorical=[0])
    with pytest.raises(InvalidInput, match=r"there is 1\.5"):
        coded.columns[0].place(np.array([1.5]))


def test_default_widths_are_those_of_the_package_and_of_the_paper() -> None:
    assert default_kernel_width(10) == pytest.approx(0.75 * np.sqrt(10))
    paper = default_kernel_width(10, "paper")
    assert paper == pytest.approx(np.sqrt(7.5))
    law = po.lime.TabularLaw.from_data(np.eye(10), kernel_width="paper")
    assert law.kernel_width == paper

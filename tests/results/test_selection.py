"""Rows and columns of explanations: those of a DataFrame, and what is known of them."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.base.errors import InvalidInput


COLUMNS = ["bp", "s5", "bmi", "age"]
X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=COLUMNS)
DATA = X.iloc[:40]
NEW = X.iloc[40:48].set_axis([f"p{n}" for n in range(8)], axis=0)
MODEL = RandomForestRegressor(5, max_depth=3, random_state=0)
MODEL.fit(DATA, DATA.bp * DATA.s5 + DATA.bmi)
TEXTS = pd.Series(
    ["good food", "bad food", "good service", "bad service here", "good"],
    index=["v", "w", "x", "y", "z"],
)
INDEXES = {
    "words": list(NEW.index),
    "numbers in another order": [5, 3, 0, 9, 7, 1, 2, 4],
    "equal words": list("abcabcab"),
    "dates": list(pd.date_range("2026-01-01", periods=8)),
    "pairs": [(word, n) for word in "ab" for n in range(4)],
    "none": None,
}


@cache
def one_by_one():
    return po.explain(MODEL, NEW, data=DATA)


@cache
def jointly():
    return po.explain(MODEL, NEW)


@cache
def by_lime():
    return po.lime.limits(MODEL, NEW, data=DATA)


@cache
def of_words():
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    model.fit(TEXTS, [1, 0, 1, 0, 1])
    return po.lime.text_limits(model, TEXTS), po.explain(model, TEXTS, data=[*TEXTS])


def numbers_of(result):
    lime = isinstance(result, po.lime.LimeExplanation)
    return result.coefficients if lime else result.attributions


# ---- Rows and columns are those of pandas


def positions(size):
    number = st.integers(-size - 2, size + 1)
    ends = st.none() | number
    masks = st.lists(st.booleans(), min_size=size - 1, max_size=size)
    many = st.lists(number, max_size=size)
    slices = st.builds(slice, ends, ends, st.sampled_from([None, 1, 2, -1, 0]))
    arrays = [many.map(lambda x: np.array(x, int)), masks.map(np.array)]
    return st.one_of(number, number.map(np.int64), slices, many, masks, *arrays)


def labels(names):
    label = st.sampled_from([*names, "nobody"])
    slices = st.builds(slice, st.none() | label, label)
    return st.one_of(label, st.lists(label, min_size=1, max_size=8), slices)


def chosen_by_pandas(frame, row, column, by_name, named):
    """What pandas selects; None where it refuses, or there is no row."""
    try:
        chosen = (frame.loc if by_name else frame.iloc)[row, :]
        if chosen.ndim == 2 and not len(chosen):
            return None
        if column is None:
            return chosen
        indexer = chosen.loc if named else chosen.iloc
        return indexer[(slice(None), column) if chosen.ndim == 2 else column]
    except (LookupError, TypeError, ValueError, pd.errors.IndexingError):
        return None


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("make", [jointly, by_lime])
@given(data=st.data())
def test_selections_are_those_of_pandas(make, name, data):
    index = INDEXES[name]
    result = make()
    points = None if index is None else tuple(index)
    result = replace(result, labels=replace(result.labels, points=points))
    frame = pd.DataFrame(numbers_of(result), index, COLUMNS)
    by_name = data.draw(st.booleans())
    row = data.draw(labels(frame.index) if by_name else positions(8))
    named = by_name or data.draw(st.booleans())
    column = data.draw(st.none() | (labels(COLUMNS) if named else positions(4)))
    expected = chosen_by_pandas(frame, row, column, by_name, named)
    indexer = result.loc if by_name else result
    key = row if column is None else (row, column)
    if expected is None:
        with pytest.raises(InvalidInput, match=r"rows: |columns: "):
            indexer[key]
        return
    actual = indexer[key]
    if column is None and expected.ndim == 2:
        assert type(actual) is type(result)
        assert actual.shape == expected.shape
        actual = pd.DataFrame(actual)
    if np.ndim(expected) == 0:
        assert type(actual) is type(expected)
        assert actual == expected
    else:
        np.testing.assert_array_equal(actual, expected)
        for one, other in zip(actual.axes, expected.axes, strict=True):
            assert list(one) == list(other)
        assert type(actual) is type(expected)
        assert getattr(actual, "name", None) == getattr(expected, "name", None)


@pytest.mark.parametrize("make", [one_by_one, jointly, by_lime])
def test_an_explanation_is_a_table_for_numpy_and_pandas(make):
    best = make()
    frame = pd.DataFrame(numbers_of(best), NEW.index, COLUMNS)
    assert len(best) == 8
    pd.testing.assert_series_equal(best["bp"], frame["bp"])
    pd.testing.assert_series_equal(best[:, "bp"], frame["bp"])
    pd.testing.assert_frame_equal(best[["s5", "bp"]], frame[["s5", "bp"]])
    pd.testing.assert_frame_equal(pd.DataFrame(best), frame)
    assert dict(best[3]) == dict(frame.iloc[3])
    assert [row.name for row in best] == list(NEW.index)
    array = np.asarray(best)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, frame)
    np.testing.assert_array_equal(np.abs(best), frame.abs())
    assert np.asarray(best, np.float32).dtype == np.float32
    copied = np.array(best)
    copied[0] = 7.0
    np.testing.assert_array_equal(numbers_of(best), frame)
    assert best[:] is best
    assert best.loc[NEW.index] is best
    cells = np.array([best, best], dtype=object)  # of pandas, and of others
    assert cells.shape == (2,)
    assert bool(best)


@pytest.mark.parametrize("make", [one_by_one, jointly, by_lime])
def test_masks_are_aligned_with_the_rows(make):
    best = make()
    mask = NEW.bp > 0.0
    assert 0 < mask.sum() < 8
    for one in (mask, mask.sort_values(), mask.to_numpy(), mask.astype("boolean")):
        assert list(best[one].row_names) == list(NEW.index[mask])
        assert list(best.loc[one].row_names) == list(NEW.index[mask])
    for other in (X.bp > 0.0, mask.reset_index(drop=True), mask.iloc[:5]):
        with pytest.raises(InvalidInput, match="an array, which is matched"):
            best[other]
    unnamed = replace(best, labels=replace(best.labels, points=None))
    assert unnamed[mask.reset_index(drop=True)].shape == (mask.sum(), 4)


def test_documents_have_their_own_words():
    lime, best = of_words()
    assert best["good"].index.tolist() == list(TEXTS.index)
    assert best.loc[["y", "v"]].labels.texts == (TEXTS["y"], TEXTS["v"])
    assert dict(lime[3]).keys() == {"bad", "service", "here"}
    assert lime[3].tolist() == lime.coefficients[3].tolist()
    assert lime.loc["y", "service"] == lime.coefficients[3][1]
    assert [dict(row).keys() for row in lime] == [set(x.split()) for x in TEXTS]
    assert lime["food"].isna().tolist() == [False, False, True, True, True]
    table = pd.DataFrame(lime)
    assert table.shape == lime.shape
    assert table.loc["x"].dropna().to_dict() == dict(lime[2])
    np.testing.assert_array_equal(np.asarray(lime), table)
    assert list(lime[1:3].row_names) == ["w", "x"]


# ---- What is known of some rows


def test_rows_that_were_explained_one_by_one_have_what_they_have_alone(tmp_path):
    chosen = ["p6", "p1", "p2"]
    alone = po.explain(MODEL, NEW.loc[chosen], data=DATA)
    best = one_by_one().loc[chosen]
    again = one_by_one()[::-1].loc[chosen]
    best.save(tmp_path / "some.npz")
    loaded = po.results.Explanation.load(tmp_path / "some.npz")
    for one in (best, again, loaded, pickle.loads(pickle.dumps(best))):
        one.validate()
        np.testing.assert_array_equal(one.attributions, alone.attributions)
        for name in ("contributions", "base_value", "prediction", "points"):
            np.testing.assert_array_equal(getattr(one, name), getattr(alone, name))
        assert one.weights == alone.weights
        assert one.losses == pytest.approx(alone.losses, rel=1e-12)
        proof = replace(alone.certificate, distance=one.certificate.distance)
        assert one.certificate == proof
        assert one.certificate.distance == pytest.approx(alone.certificate.distance)
        assert one.certificate.n_rows is None
        assert one.target.size == alone.target.size
        assert one.target.n_entries == alone.target.n_entries
        assert one.target.source == alone.target.source
        assert one.row_size == alone.row_size
        assert one.quantity == alone.quantity
        for name, array in alone.details.items():
            np.testing.assert_array_equal(one.details[name], array)
        for name, array in alone.problem_data.items():
            np.testing.assert_array_equal(one.problem_data[name], array)


def test_documents_that_were_explained_one_by_one_have_their_certificate(tmp_path):
    _, best = of_words()
    some = best[[3, 0]]
    some.save(tmp_path / "some.npz")
    loaded = po.results.Explanation.load(tmp_path / "some.npz")
    np.testing.assert_array_equal(loaded.details["gap"], best.details["gap"][[3, 0]])
    assert loaded.certificate == some.certificate
    assert loaded.certificate.value == best.details["value"][[0, 3]].sum()


@pytest.mark.parametrize("kind", ["jointly", "by another objective"])
def test_the_gap_of_rows_that_were_explained_jointly_is_that_of_all(kind, tmp_path):
    whole = jointly()
    if kind == "by another objective":  # which compares the rows
        objective = po.GradientMatching(one_by_one().contributions)
        objective += 0.1 * po.PairwiseRobustness(po.graphs.chain_graph(8))
        whole = one_by_one().certified(objective)
    some = whole[2:5][[2, 0]]
    assert list(some.row_names) == ["p4", "p2"]
    some.save(tmp_path / "some.npz")
    for one in (some, po.results.Explanation.load(tmp_path / "some.npz")):
        assert one.certificate == replace(whole.certificate, n_rows=8)
        assert one.gap == whole.gap
        assert not one.losses
        assert not one.weights
        assert one.clear().small_change == whole.clear().small_change
    assert one.clear().sign.shape == (2, 4)
    with pytest.raises(InvalidInput, match="objective"):
        some.certain()


def test_a_selection_of_limes_rows_is_saved(tmp_path):
    some = by_lime()[[5, 2]]
    some.save(tmp_path / "some.npz")
    loaded = po.lime.LimeExplanation.load(tmp_path / "some.npz")
    assert loaded.to_frame().equals(some.to_frame())
    assert list(loaded.row_names) == ["p5", "p2"]

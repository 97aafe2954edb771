"""Blocks of explained rows: the same bits in any block, and columns that are fixed."""

import pickle

import numpy as np
import pandas as pd
import pytest
from explainer_cases import EXPLAINERS, IN_PARTS, MIXED, X_NEW, X, black_box

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.out_of_sample import OutOfSampleRows
from propopt.proofs.certificate import gaps_of


CASES = {**EXPLAINERS, **{f"parts, {name}": make for name, make in IN_PARTS.items()}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_block_has_the_bits_of_the_whole_explanation(name):
    explainer = CASES[name]().fit(progress=False)
    rows = (MIXED if "categories" in name else X_NEW).iloc[:12]
    rows = rows.to_numpy() if "without names" in name else rows.set_axis(range(5, 17))
    whole = explainer.explain(rows, progress=False)
    table = explainer.transform(rows)
    parts = whole.base_value is not None
    ends = ["base_value", "prediction"] * parts + ["gap", "error"]
    assert list(table.columns) == [*whole.to_frame().columns, *ends]
    assert set(table.dtypes) == {np.dtype(float)}
    pd.testing.assert_index_equal(table.index, whole.to_frame().index)
    numbers = [whole.attributions, *([whole.base_value, whole.prediction] * parts)]
    numbers += [whole.details["gap"], whole.details["error"]]
    expected = np.column_stack(numbers)
    assert table.to_numpy().tobytes() == expected.tobytes()
    again = pickle.loads(pickle.dumps(table))
    blocks = [explainer.transform(rows[start : start + 5]) for start in (0, 5, 10)]
    assert np.vstack(blocks).tobytes() == again.to_numpy().tobytes()
    empty = explainer.transform(rows[:0])
    assert list(empty.columns) == list(table.columns)
    assert set(empty.dtypes) == {np.dtype(float)}
    assert len(empty) == 0


def test_numbers_of_a_row_yield_their_names_to_features():
    names = ["gap", "prediction", "prediction_", "f3", "error"]
    table = X.set_axis(names, axis=1)
    explainer = po.Explainer(black_box, data=table).fit(progress=False)
    rows = X_NEW.set_axis(names, axis=1).iloc[:3]
    whole, explained = explainer.explain(rows), explainer.transform(rows)
    assert list(explained.columns) == [
        *names,
        "base_value",
        "prediction__",
        "gap_",
        "error_",
    ]
    np.testing.assert_array_equal(explained[names], whole.attributions)
    np.testing.assert_array_equal(explained["prediction__"], whole.prediction)
    np.testing.assert_array_equal(explained["gap_"], whole.details["gap"])


def test_other_columns_are_refused_also_without_rows():
    explainer = po.Explainer(black_box, data=X).fit(progress=False)
    for rows in (X_NEW.iloc[:2], X_NEW.iloc[:0]):
        with pytest.raises(InvalidInput, match="unexpected: 'id'"):
            explainer.transform(rows.assign(id=1))
        with pytest.raises(InvalidInput, match="another order"):
            explainer.transform(rows.iloc[:, ::-1])
    explainer = po.Explainer(black_box, data=X.to_numpy()).fit(progress=False)
    assert explainer.transform(np.zeros((0, 5))).shape == (0, 9)
    with pytest.raises(InvalidInput, match="expected 5 columns, got 4"):
        explainer.transform(np.zeros((0, 4)))


@pytest.mark.parametrize("complete", [False, True])
def test_the_gap_of_a_row_bounds_its_excess(complete):
    rng = np.random.default_rng(0)
    axis = rng.uniform(0.5, 2.0, size=4)
    fields = {
        "target": rng.normal(size=(50, 4)),
        "similarities": rng.uniform(size=(50, 3)),
        "fixed": rng.normal(size=(50, 3, 4)),
        "weights": (1.0, 0.4),
    }
    rows = OutOfSampleRows(**fields)
    total = rng.normal(size=50)
    rows = rows.complete(axis, axis, total) if complete else rows
    steps = 0.3 * rng.normal(size=(50, 4))
    if complete:  # steps that change no sum
        steps -= np.outer(steps @ axis, axis) / (axis @ axis)
    w = rows.optima()
    best, worse = rows.measures(w), rows.measures(w + steps)
    excess = (worse["value"] - best["value"]) / worse["value"]
    np.testing.assert_allclose(gaps_of(worse), excess, rtol=1e-9)  # of quadratics
    assert (gaps_of(best) < 1e-15).all()


def test_the_gap_of_a_row_that_costs_nothing_is_zero():
    nothing = {name: np.zeros(2) for name in ("value", "excess", "value_of_zero")}
    assert gaps_of(nothing).tolist() == [0.0, 0.0]
    rounded = {**nothing, "excess": np.array([1e-20, 2.0]), "value": np.array([0, 1])}
    assert gaps_of({**rounded, "value_of_zero": np.ones(2)}).tolist() == [0.0, 1.0]

"""The table of a sweep, and its CSV file."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from exact_csv import read_csv
from hypothesis import given
from hypothesis import strategies as st
from sweeps import WEIGHTS, explanation, explanation_of

import propopt as po


def settings_of_every_kind():
    return [
        explanation("gradient", losses=(4, 5), seconds=0.1),
        explanation(
            "lime",
            losses=(1 / 3, 1e-300),
            parameters={"scale": 0.1, "n_samples": 100, "fit_intercept": True},
        ),
        explanation(
            "smoothgrad",
            losses=(np.pi * 1e17, 5e-324),
            parameters={"scale": 0.1 + 0.2, "n_samples": 7, "distribution": "ball"},
        ),
    ]


@pytest.fixture
def curve():
    names = ("loss0", "loss1")
    best = explanation(
        "optimized",
        losses=(0.1, 0.7),
        weights={"loss0": 1.0, "loss1": 1 / 7},
        seconds=1e-5 / 3,
    )
    return po.TradeOffs(
        optimized=(best,), baselines=tuple(settings_of_every_kind()), losses=names
    )


COLUMNS = [
    "method",
    "weight.loss0",
    "weight.loss1",
    "parameter.scale",
    "parameter.n_samples",
    "parameter.fit_intercept",
    "parameter.distribution",
    "loss.loss0",
    "loss.loss1",
    "objective",
    "gap",
    "target_error",
    "on_front",
    "seconds",
    "target",
]


def test_columns_of_the_table(curve, tmp_path):
    assert list(curve.to_frame()) == COLUMNS
    curve.to_csv(tmp_path / "curve.csv")
    header = (tmp_path / "curve.csv").read_text().splitlines()[0]
    assert header == ",".join(COLUMNS)


def test_csv_as_text(curve, tmp_path):
    curve.to_csv(tmp_path / "curve.csv")
    with open(tmp_path / "curve.csv", newline="") as file:
        optimum, gradient, lime, smooth = csv.DictReader(file)
    assert optimum["on_front"] == "True"
    assert float(optimum["weight.loss1"]) == 1 / 7
    assert float(optimum["objective"]) == 0.1 + 0.7 / 7
    assert float(optimum["seconds"]) == 1e-5 / 3
    assert {gradient[name] for name in COLUMNS[1:7]} == {""}
    assert gradient["gap"] == gradient["objective"] == ""
    assert lime["parameter.n_samples"] == "100"
    assert lime["parameter.fit_intercept"] == "True"
    assert float(lime["loss.loss0"]) == 1 / 3
    assert smooth["parameter.fit_intercept"] == ""
    assert smooth["parameter.distribution"] == "ball"
    assert float(smooth["parameter.scale"]) == 0.1 + 0.2
    assert float(smooth["loss.loss1"]) == 5e-324


@given(
    st.lists(
        st.tuples(*2 * [st.floats(min_value=0, allow_infinity=False)], st.floats(0, 9)),
        min_size=1,
        max_size=5,
    )
)
def test_floats_read_back_to_the_same_value(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("table") / "curve.csv"
    baselines = tuple(
        explanation(losses=row[:2], parameters={"scale": row[2]}) for row in rows
    )
    curve = po.TradeOffs(optimized=(), baselines=baselines, losses=("loss0", "loss1"))
    curve.to_csv(path)
    read = read_csv(path)
    names = ["loss.loss0", "loss.loss1", "parameter.scale"]
    np.testing.assert_array_equal(read[names].to_numpy(float), np.array(rows))
    with open(path, newline="") as file:
        text = [[float(row[name]) for name in names] for row in csv.DictReader(file)]
    np.testing.assert_array_equal(text, np.array(rows))


def test_gap_of_a_real_sweep(objective, tmp_path):
    curve = po.sweep(
        objective, {"pairwise_robustness": WEIGHTS}, [explanation_of(objective)]
    )
    curve.to_csv(tmp_path / "curve.csv")
    read = read_csv(tmp_path / "curve.csv")
    pd.testing.assert_frame_equal(read, curve.to_frame(), check_dtype=False)
    assert (read["gap"][:5] <= 1e-9).all()
    assert np.isnan(read["gap"][5])
    assert (read["seconds"][:5] > 0).all()
    assert read["method"].tolist() == 5 * ["optimized"] + ["given"]


def test_losses_of_bounds_are_no_columns(X):
    bound = po.Sparsity() <= 3.0
    curve = po.sweep(po.GradientMatching(X), {}, subject_to=[bound])
    assert curve.optimized[0].losses["sparsity"] == pytest.approx(3.0, abs=1e-4)
    assert [c for c in curve.to_frame() if c.startswith("loss.")] == [
        "loss.gradient_matching"
    ]


def test_repr(objective):
    text = repr(po.sweep(objective, {}))
    assert text.startswith("<TradeOffs of gradient_matching, pairwise_robustness: 1 ")
    assert text.endswith("1 optimized, 0 baselines>")

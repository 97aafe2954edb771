"""Many metrics of many methods, as one table."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from metric_cases import FAITHFUL, FUNCTION, S, explain, f

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining import metrics
from propopt.explaining.explainers import Gradient, SmoothGrad
from propopt.explaining.metrics import (
    BaselineMethod,
    FaithfulnessCorrelation,
    Infidelity,
    MaxSensitivity,
    RelativeOutputStability,
    Sparseness,
    UndefinedRowsWarning,
    evaluate,
    evaluate_rows,
)


@pytest.fixture
def explained(X):
    return [
        Gradient(),
        SmoothGrad(scale=0.3, n_samples=7),
        po.Explanation(attributions=explain(X), method="given"),
    ]


def test_evaluate_is_the_mean_of_each_metric(explained, X):
    columns = [MaxSensitivity(n_samples=S), *FAITHFUL, Sparseness()]
    table = evaluate(columns, FUNCTION, X, explained, rng=5)
    assert list(table.index) == ["gradient", "smoothgrad", "given"]
    assert list(table.columns) == [metric.name for metric in columns]
    smooth = explained[1].explain(FUNCTION, X, rng=5)
    for metric in FAITHFUL:
        expected = metric(smooth, FUNCTION, X, rng=5).mean()
        assert table.loc["smoothgrad", metric.name] == pytest.approx(expected)
    method = BaselineMethod(explainer=explained[1], function=FUNCTION, rng=5)
    expected = columns[0](method, X, rng=5).mean()
    assert table.loc["smoothgrad", columns[0].name] == pytest.approx(expected)


def test_an_explanation_has_no_robustness_elsewhere(explained, X):
    columns = [MaxSensitivity(), RelativeOutputStability(), Sparseness()]
    table = evaluate(columns, FUNCTION, X, explained)
    assert table.loc["given"].isna().tolist() == [True, True, False]
    assert table.drop("given").notna().all(axis=None)


def test_rows_have_the_names_of_the_points(X):
    frame = pd.DataFrame(X, columns=list("abcd"), index=list("uvwxyz"))
    function = po.wrap(lambda table: f(table.to_numpy()))
    rows = evaluate_rows({"gini": Sparseness()}, function, frame, [Gradient()])
    assert rows.index.names == ["method", "point"]
    assert rows.loc["gradient"].index.tolist() == list("uvwxyz")
    W = Gradient().explain(function, frame)
    np.testing.assert_array_equal(rows["gini"], Sparseness()(W))


def test_means_leave_out_what_is_undefined():
    given = po.Explanation(attributions=np.array([[0.0, 0], [0, 1]]), method="given")
    with pytest.warns(UndefinedRowsWarning, match="1 of 2"):
        table = evaluate([Sparseness()], FUNCTION, np.ones((2, 2)), [given])
    assert table.loc["given", "Sparseness"] == 0.5


def test_a_mapping_gives_names_to_callables_and_settings(X):
    table = evaluate(
        {"near": MaxSensitivity(scale=0.01), "far": MaxSensitivity(scale=0.5)},
        FUNCTION,
        X,
        {"ours": explain, "gradient": Gradient()},
    )
    assert list(table.columns) == ["near", "far"]
    assert (table["near"] < table["far"]).all()


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ([Sparseness(), Sparseness()], [Gradient()]),
        ([Sparseness()], [Gradient(), Gradient()]),
        ([], [Gradient()]),
        ([Sparseness()], []),
    ],
)
def test_names_that_are_not_unique_are_refused(columns, rows, X):
    with pytest.raises(InvalidInput, match="different names"):
        evaluate(columns, FUNCTION, X, rows)


def test_a_generator_gives_one_seed_for_all(explained, X):
    rng = np.random.default_rng(8)
    seed = int(np.random.default_rng(8).integers(2**63))
    pd.testing.assert_frame_equal(
        evaluate(FAITHFUL, FUNCTION, X, explained, rng=rng),
        evaluate(FAITHFUL, FUNCTION, X, explained, rng=seed),
    )


def test_names_tell_the_settings_that_are_not_the_default():
    assert Infidelity().name == "Infidelity"
    assert Infidelity(rescaling="best").name == "Infidelity(rescaling='best')"
    named = FaithfulnessCorrelation(k=2, baseline=np.zeros(3)).name
    assert named == "FaithfulnessCorrelation(k=2, baseline=3)"


@pytest.mark.parametrize("name", metrics.__all__)
def test_what_is_public_is_documented(name):
    assert len((inspect.getdoc(getattr(metrics, name)) or "").split()) >= 3

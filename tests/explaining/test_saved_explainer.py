"""Explainers are saved without their models, and answer as before, bit by bit."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from crafted_archives import members_of, write_signed
from explainer_cases import (
    EXPLAINERS,
    X_NEW,
    N,
    X,
    black_box,
    forest,
    mixed,
    same,
    taken,
)
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.saved_explainer import CHECKED_ROWS


pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
NEW = {"categories": mixed(1, 10), "network, without names": X_NEW.to_numpy()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EXPLAINERS)
def test_a_loaded_explainer_answers_with_the_same_bits(name, tmp_path):
    explainer = EXPLAINERS[name]().fit()
    explainer.save(tmp_path / "it.npz")
    fresh = EXPLAINERS[name]()  # a model that nobody asked anything before
    loaded = po.Explainer.load(tmp_path / "it.npz", fresh.model)
    rows = taken(NEW.get(name, X_NEW), range(10))
    same(loaded.explain(rows), explainer.explain(rows), list(range(10)))
    assert loaded.robustness_ == explainer.robustness_
    assert loaded.explain(rows).parameters == explainer.explain(rows).parameters
    np.testing.assert_array_equal(
        loaded.reference_.attributions, explainer.reference_.attributions
    )


def rewritten(path, change_header=None, change_arrays=None):
    """The same file with something else in it."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    if change_header is not None:
        change_header(header)
    if change_arrays is not None:
        change_arrays(arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)
    write_signed(path, members_of(path))


@pytest.fixture
def path(tmp_path):
    po.Explainer(black_box, data=X).fit().save(tmp_path / "it.npz")
    return tmp_path / "it.npz"


def test_another_function_is_refused_by_its_values(path):
    with pytest.raises(InvalidInput, match=r"another function .* its value is"):
        po.Explainer.load(path, lambda table: black_box(table) + 1.0)


@pytest.mark.parametrize(("unit", "offset"), [(1e-10, 0.0), (1e-10, 1.0), (1.0, 1e6)])
def test_another_function_is_refused_whatever_its_unit(tmp_path, unit, offset):
    def model(table):
        return offset + unit * black_box(table)

    def other(table):  # wrong by a thousandth of what it tells
        return offset + 1.001 * unit * black_box(table)

    fitted = po.Explainer(model, data=X, law="none").fit()
    fitted.save(tmp_path / "it.npz")
    po.Explainer.load(tmp_path / "it.npz", model)
    with pytest.raises(InvalidInput, match=r"another function .* its value is"):
        po.Explainer.load(tmp_path / "it.npz", other)


def test_a_function_of_other_slopes_is_refused_by_its_targets(tmp_path):
    function = po.wrap(black_box)
    po.Explainer(function, data=X.to_numpy()).fit().save(tmp_path / "it.npz")
    other = po.wrap(black_box, gradient=lambda table: np.ones(np.shape(table)))
    with pytest.raises(InvalidInput, match=r"another function .* its target is"):
        po.Explainer.load(tmp_path / "it.npz", other)


def test_a_function_is_loaded_with_a_function(tmp_path):
    function = po.wrap(black_box)
    po.Explainer(function, data=X.to_numpy()).fit().save(tmp_path / "it.npz")
    with pytest.raises(InvalidInput, match=r"fitted to a Function"):
        po.Explainer.load(tmp_path / "it.npz", black_box)
    po.Explainer(black_box, data=X.to_numpy()).fit().save(tmp_path / "it.npz")
    with pytest.raises(InvalidInput, match="fitted to the model itself"):
        po.Explainer.load(tmp_path / "it.npz", function)


def test_what_was_asked_of_the_model_is_asked_again(tmp_path):
    model = LogisticRegression().fit(X, np.arange(N) % 3)
    explainer = po.Explainer(model, data=X, target=2, output="log_odds").fit()
    explainer.save(tmp_path / "it.npz")
    loaded = po.Explainer.load(tmp_path / "it.npz", model)
    assert (loaded.target, loaded.output) == (2, "log_odds")
    same(loaded.explain(X_NEW), explainer.explain(X_NEW), list(range(len(X_NEW))))


def test_no_model_is_in_the_file(tmp_path):
    model = forest()
    po.Explainer(model, data=X).fit().save(tmp_path / "it.npz")
    with np.load(tmp_path / "it.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "fiubU" for name in file.files)
        assert len(file["values"]) == CHECKED_ROWS


def test_names_that_are_no_text_are_not_saved(tmp_path):
    dates = X.set_axis(pd.date_range("2020", periods=X.shape[1]), axis=1)
    explainer = po.Explainer(black_box, data=dates).fit()
    with pytest.raises(InvalidInput, match="neither text nor a number"):
        explainer.save(tmp_path / "it.npz")
    assert not (tmp_path / "it.npz").exists()


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("n_neighbors", 0, "n_neighbors: expected an integer >= 1"),
        ("law", "lime", "law: expected 'auto', 'data'"),
        ("seed", -1, "seed: expected an integer >= 0"),
        ("n_rows", None, "n_rows: expected an integer >= 1"),
        ("schema", 3, "schema: expected what makes a TableSchema"),
        ("schema", {}, "its schema makes no sense"),
        ("reference", {}, "its header has no reference"),
    ],
)
def test_files_that_hold_something_else_are_refused(path, key, value, sentence):
    rewritten(path, lambda header: header.update({key: value}))
    with pytest.raises(InvalidInput, match=sentence):
        po.Explainer.load(path, black_box)


def test_similarities_that_differ_are_in_files_of_before_alone(path):
    before = {
        "version": 2,
        "explanation": {},
        "model": {},
        "table": {},
        "nearest": {"n_neighbors": 8, "lengthscale": 0.7},
    }
    rewritten(path, lambda header: header.update(before))
    with pytest.raises(InvalidInput, match="weights='gaussian', which an Explainer"):
        po.Explainer.load(path, black_box)


@pytest.mark.parametrize(
    "name",
    ["rows", "table", "sizes", "values", "reference.attributions"],
)
def test_files_that_lack_an_array_are_refused(path, name):
    rewritten(path, None, lambda arrays: arrays.pop(name))
    with pytest.raises(InvalidInput, match="it"):
        po.Explainer.load(path, black_box)


def test_a_saved_explanation_is_no_explainer(tmp_path):
    po.Explainer(black_box, data=X).fit().reference_.save(tmp_path / "it.npz")
    with pytest.raises(InvalidInput, match="not a saved explainer"):
        po.Explainer.load(tmp_path / "it.npz", black_box)


def test_effects_of_missing_numbers_are_no_slopes_after_loading(tmp_path):
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=60), 1000.0 * rng.normal(size=60)], axis=1)
    X[::4, 1] = np.nan
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5)
    model.fit(X, np.nan_to_num(X[:, 1]))
    explainer = po.Explainer(model, data=X, robustness=0.1).fit()
    explainer.save(tmp_path / "explainer.npz")
    again = po.Explainer.load(tmp_path / "explainer.npz", model)
    np.testing.assert_array_equal(
        again.explain(X[:3]).attributions, explainer.explain(X[:3]).attributions
    )

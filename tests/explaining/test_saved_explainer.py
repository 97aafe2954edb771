"""Explainers are saved without their models, and answer as before, bit by bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from crafted_archives import header_of, members_of, with_header, write_signed
from explainer_cases import (
    EXPLAINERS,
    IN_PARTS,
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
EVERY = EXPLAINERS | {f"parts: {name}": IN_PARTS[name] for name in IN_PARTS}
NEW = {"network, without names": X_NEW.to_numpy()}
NEW |= dict.fromkeys(["categories", "parts: categories"], mixed(1, 10))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", EVERY)
def test_a_loaded_explainer_answers_with_the_same_bits(name, tmp_path):
    explainer = EVERY[name]().fit()
    fresh = EVERY[name]()  # a model that nobody asked anything before
    rows = taken(NEW.get(name, X_NEW), range(10))
    answers, settings = explainer.explain(rows), ("units", "metric", "contributions")
    for path in (tmp_path / "one.npz", tmp_path / "two.npz"):
        explainer.save(path)
        explainer = po.Explainer.load(path, fresh.model)
        again = explainer.explain(rows)
        same(again, answers, list(range(10)))
        assert again.parameters == answers.parameters
        for setting in settings:
            assert getattr(explainer, setting) == getattr(fresh, setting)
    original = EVERY[name]().fit()
    assert explainer.robustness_ == original.robustness_
    np.testing.assert_array_equal(
        explainer.reference_.attributions, original.reference_.attributions
    )


def rewritten(path, **items):
    """The same file with something else in its header."""
    members = members_of(path)
    write_signed(path, with_header(members, header_of(members) | items))


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
    rewritten(path, **{key: value})
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
    rewritten(path, **before)
    with pytest.raises(InvalidInput, match="weights='gaussian', which an Explainer"):
        po.Explainer.load(path, black_box)


@pytest.mark.parametrize(
    "name",
    ["rows", "table", "sizes", "values", "reference.attributions"],
)
def test_files_that_lack_an_array_are_refused(path, name):
    members = members_of(path)
    del members[f"{name}.npy"]
    write_signed(path, members)
    with pytest.raises(InvalidInput, match=f"it has no {name}"):
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

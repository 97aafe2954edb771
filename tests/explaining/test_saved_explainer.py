"""Explainers are saved without their models, answer bit by bit, or are refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    craft,
    header_of,
    members_of,
    npy,
    with_header,
    write_signed,
)
from explainer_cases import (
    EXPLAINERS,
    IN_PARTS,
    MIXED,
    OUTPUT,
    X_NEW,
    N,
    X,
    black_box,
    forest,
    mixed,
    mixed_model,
    same,
    taken,
)
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.saved_explainer import CHECKED_ROWS


pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

EVERY = EXPLAINERS | {f"parts: {name}": IN_PARTS[name] for name in IN_PARTS}

NEW = {"network, without names": X_NEW.to_numpy()}
NEW |= dict.fromkeys(["categories", "parts: categories"], mixed(1, 5))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", EVERY)
def test_a_loaded_explainer_answers_with_the_same_bits(name, tmp_path):
    original = explainer = EVERY[name]().fit()
    fresh = EVERY[name]()  # a model that nobody asked anything before
    rows = taken(NEW.get(name, X_NEW), range(5))
    answers, settings = explainer.explain(rows), ("units", "metric", "contributions")
    for path in (tmp_path / "one.npz", tmp_path / "two.npz"):
        explainer.save(path)
        explainer = po.Explainer.load(path, fresh.model)
        again = explainer.explain(rows)
        same(again, answers, list(range(5)))
        assert again.parameters == answers.parameters
        for setting in settings:
            assert getattr(explainer, setting) == getattr(fresh, setting)
    assert explainer.robustness_ == original.robustness_
    np.testing.assert_array_equal(
        explainer.reference_.attributions, original.reference_.attributions
    )


FUNCTION, ARRAY = po.wrap(black_box), X.to_numpy()


def elsewhere(table):
    """The same at all reference rows, not between them."""
    points = np.asarray(table, dtype=float)
    there = (points[:, None] == ARRAY[None]).all(axis=2).any(axis=1)
    return np.where(there, black_box(points), 2.0 * black_box(points))


IN_OUTPUT = {"units": "output", "n_reference": 10, "robustness": 0.1}
FLAT = po.wrap(black_box, gradient=lambda table: np.ones(np.shape(table)))


def scaled(unit, offset):
    return lambda table: offset + unit * black_box(table)


OTHERS = [
    *(  # wrong by a thousandth of what it tells
        (scaled(u, c), {"law": "none"}, scaled(1.001 * u, c), "another .* its value is")
        for u, c in ((1e-10, 0.0), (1e-10, 1.0), (1.0, 1e6))
    ),
    (black_box, {}, scaled(1.0, 1.0), "another function .* its value is"),
    (FUNCTION, {}, FLAT, "another function .* its target is"),
    (FUNCTION, {}, black_box, "fitted to a Function"),
    (black_box, {}, FUNCTION, "fitted to the model itself"),
    (FUNCTION, IN_OUTPUT, po.wrap(elsewhere), "another function .* its target is"),
]


@pytest.mark.parametrize(("model", "settings", "other", "sentence"), OTHERS)
def test_another_function_is_refused(model, settings, other, sentence, tmp_path):
    po.Explainer(model, data=ARRAY, **settings).fit().save(tmp_path / "it.npz")
    po.Explainer.load(tmp_path / "it.npz", model)
    with pytest.raises(InvalidInput, match=sentence):
        po.Explainer.load(tmp_path / "it.npz", other)


def test_parts_that_do_not_add_up_are_not_loaded(tmp_path):
    path, model = tmp_path / "it.npz", forest()
    po.Explainer(model, data=X, units="output").fit().save(path)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "fiubU" for name in file.files)
        assert len(file["values"]) == CHECKED_ROWS  # and no model is in it
        W = file["reference.attributions"].copy()
    W[5, 0] += 1e-6 * np.abs(W).max()
    write_signed(path, {**members_of(path), "reference.attributions.npy": npy(W)})
    with pytest.raises(InvalidInput, match=r"row 5 does not add up|is said to be"):
        po.Explainer.load(path, model)


def test_what_was_asked_of_the_model_is_asked_again(tmp_path):
    model = LogisticRegression().fit(X, np.arange(N) % 3)
    explainer = po.Explainer(model, data=X, target=2, output="log_odds").fit()
    explainer.save(tmp_path / "it.npz")
    loaded = po.Explainer.load(tmp_path / "it.npz", model)
    assert (loaded.target, loaded.output) == (2, "log_odds")
    same(loaded.explain(X_NEW), explainer.explain(X_NEW), list(range(len(X_NEW))))
    # effects of missing numbers are no slopes after loading
    rows = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5)
    explainer = po.Explainer(model.fit(rows, OUTPUT), data=rows, robustness=0.1).fit()
    explainer.save(tmp_path / "it.npz")
    loaded = po.Explainer.load(tmp_path / "it.npz", model)
    same(loaded.explain(rows[:3]), explainer.explain(rows[:3]), [0, 1, 2])


def test_names_that_are_no_text_are_not_saved(tmp_path):
    dates = X.set_axis(pd.date_range("2020", periods=X.shape[1]), axis=1)
    explainer = po.Explainer(black_box, data=dates).fit()
    with pytest.raises(InvalidInput, match="neither text nor a number"):
        explainer.save(tmp_path / "it.npz")
    assert not (tmp_path / "it.npz").exists()


NEAREST = {"n_neighbors": 8, "lengthscale": 0.7}
BEFORE = {"version": 2, "explanation": {}, "model": {}, "table": {}}
CHANGED = [
    ({"n_neighbors": 0}, "n_neighbors: expected an integer >= 1"),
    ({"law": "lime"}, "law: expected 'auto', 'data'"),
    ({"seed": -1}, "seed: expected an integer >= 0"),
    ({"n_rows": None}, "n_rows: expected an integer >= 1"),
    ({"schema": 3}, "schema: expected what makes a TableSchema"),
    ({"schema": {}}, "its schema makes no sense"),
    ({"reference": {}}, "its header has no reference"),
    ({**BEFORE, "nearest": NEAREST}, "weights='gaussian', which an Explainer"),
    ({"n_neighbors": 3}, "nearest: graph: the reference has"),
]


TREE = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X["f0"] + X["f3"])

COLOURS = mixed_model()

CASES = {
    "slopes": (black_box, X, {"robustness": 0.2}),
    "categories": (COLOURS, MIXED, {"robustness": 0.2}),
    "parts": (TREE, X, {"units": "output", "metric": "effects"}),
    "arrays": (black_box, X.to_numpy(), {"robustness": 0.1}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """The file of a sound explainer, its model, and rows to come."""
    model, data, settings = CASES[request.param]
    path = tmp_path_factory.mktemp("sound") / "sound.npz"
    explainer = po.Explainer(model, data=data, n_reference=12, **settings).fit()
    explainer.save(path)
    rows = mixed(1, 3) if data is MIXED else X_NEW[:3]
    rows = rows.to_numpy() if isinstance(data, np.ndarray) else rows
    return path, model, rows


def outcome(path, case):
    """Whether it loads; then it answers in numbers, else in a sentence of ours."""
    _, model, rows = case
    message = ""
    try:
        loaded = po.Explainer.load(path, model)
    except InvalidInput as error:
        message = str(error)
    if message:
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
        return False
    assert np.isfinite(loaded.explain(rows).attributions).all()
    assert repr(loaded)
    return True


def test_files_that_hold_something_else_are_refused(case, tmp_path):
    sound, model, *_ = case
    members, path = members_of(sound), tmp_path / "crafted.npz"
    for items, sentence in CHANGED:
        write_signed(path, with_header(members, header_of(members) | items))
        with pytest.raises(InvalidInput, match=sentence):
            po.Explainer.load(path, model)
    for name in ("rows", "sizes", "values"):
        for odd in (np.nan, np.inf, 0.5):
            with np.load(sound, allow_pickle=False) as file:
                array = file[name].copy()
            array.flat[0] += odd * (1.0 + abs(array.flat[0]))
            write_signed(path, {**members, f"{name}.npy": npy(array)})
            with pytest.raises(InvalidInput, match=r"crafted\.npz: "):
                po.Explainer.load(path, model)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_explainer_is_refused_or_sound(seed, case, tmp_path):
    rng, path, loaded = np.random.default_rng(seed), tmp_path / "crafted.npz", []
    for _ in range(40):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two of one name; numbers that overflow
            mutation = craft(rng, case[0], path)
            try:
                loaded.append(outcome(path, case))
            except Exception as error:
                raise AssertionError(mutation) from error
    assert not all(loaded)
    assert outcome(case[0], case)  # the sound one

"""Explainers' archives that are not what save writes: our errors, or sound answers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from crafted_archives import (
    craft,
    header_of,
    members_of,
    npy,
    with_header,
    write_signed,
)
from explainer_cases import MIXED, X_NEW, X, black_box, mixed, mixed_model
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InvalidInput


pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")

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
    """The file of a sound explainer, its model, rows to come and what it answers."""
    model, data, settings = CASES[request.param]
    path = tmp_path_factory.mktemp("sound") / "sound.npz"
    explainer = po.Explainer(model, data=data, n_reference=12, **settings).fit()
    explainer.save(path)
    rows = mixed(1, 3) if data is MIXED else X_NEW[:3]
    rows = rows.to_numpy() if isinstance(data, np.ndarray) else rows
    return path, model, rows, explainer.explain(rows).attributions


def outcome(path, case, mutation):
    """Whether it loads; then it answers in numbers, else in a sentence of ours."""
    _, model, rows, _ = case
    try:
        loaded = po.Explainer.load(path, model)
    except InvalidInput as error:
        message = str(error)
        assert message.startswith(f"{path}: "), (mutation, message)
        assert "\n" not in message, (mutation, message)
        return None
    result = loaded.explain(rows)
    assert np.isfinite(result.attributions).all(), mutation
    assert repr(loaded)
    return result.attributions


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_explainer_is_refused_or_sound(seed, case, tmp_path):
    rng = np.random.default_rng(seed)
    path = tmp_path / "crafted.npz"
    outcomes = []
    for _ in range(60):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two of one name; numbers that overflow
            mutation = craft(rng, case[0], path)
            try:
                outcomes.append(outcome(path, case, mutation))
            except Exception as error:
                raise AssertionError(mutation) from error
    assert any(result is None for result in outcomes)
    assert outcome(case[0], case, "none") is not None  # the sound one


@pytest.mark.parametrize("odd", [np.nan, np.inf, 0.5])
@pytest.mark.parametrize("name", ["rows", "sizes", "values"])
def test_numbers_that_are_others_are_refused(odd, name, case, tmp_path):
    members = members_of(case[0])
    with np.load(case[0], allow_pickle=False) as file:
        array = file[name].copy()
    array.flat[0] += odd * (1.0 + abs(array.flat[0]))
    path = tmp_path / "crafted.npz"
    write_signed(path, {**members, f"{name}.npy": npy(array)})
    with pytest.raises(InvalidInput, match=r"crafted\.npz: "):
        po.Explainer.load(path, case[1])


def test_a_rule_of_neighbours_that_is_another_is_refused(case, tmp_path):
    header = header_of(members_of(case[0]))
    header["n_neighbors"] = 3
    path = tmp_path / "crafted.npz"
    write_signed(path, with_header(members_of(case[0]), header))
    with pytest.raises(InvalidInput, match="nearest: graph: the reference has"):
        po.Explainer.load(path, case[1])

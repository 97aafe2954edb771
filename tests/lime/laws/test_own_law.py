"""The law that CONTRIBUTING.md shows is a law: its limits are sums over all bits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest

import propopt as po
from propopt.base.arrays import Array, Positions, Values
from propopt.lime.laws.lime_law import LimeLaw, Tilt, tilt_of_masses
from propopt.structures.products.families import Pieces


RECIPES = Path(po.__file__).parents[1] / "CONTRIBUTING.md"
BASELINE = np.array([0.5, -1.0, 2.0])
ROW = np.array([[1.0, 0.3, -0.7]])
WIDTH = 0.8


def law() -> LimeLaw:
    blocks = RECIPES.read_text(encoding="utf-8").split("```")
    (code,) = (block for block in blocks if "class SwitchedLaw" in block)
    names: dict[str, Any] = {
        "Array": Array,
        "LimeLaw": LimeLaw,
        "Pieces": Pieces,
        "Positions": Positions,
        "Tilt": Tilt,
        "Values": Values,
        "dataclass": dataclass,
        "final": final,
        "np": np,
        "tilt_of_masses": tilt_of_masses,
    }
    exec(code.removeprefix("python\n"), names)
    columns = tuple(map(names["SwitchedColumn"], BASELINE.tolist()))
    made: LimeLaw = names["SwitchedLaw"](columns, WIDTH)
    return made


def by_all_bits(f) -> Array:
    """Weighted least squares on all 8 samples."""
    bits = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    root = np.exp(-(1.0 - bits).sum(axis=1) / (4.0 * WIDTH**2))
    Z = np.column_stack([np.ones(8), bits]) * root[:, None]
    return np.linalg.lstsq(Z, root * f(np.where(bits == 1.0, ROW, BASELINE)))[0]


@pytest.fixture
def forest():
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0)
    return model.fit(X, X[:, 0] * X[:, 1] + np.abs(X[:, 2]))


def test_limits_of_the_law_that_is_shown_are_sums_over_all_bits(forest):
    result = po.lime.limits(forest, ROW, law())
    expected = by_all_bits(forest.predict)
    assert result.source == "exact"
    np.testing.assert_allclose(result.intercept, expected[0], atol=1e-12)
    np.testing.assert_allclose(result.coefficients[0], expected[1:], atol=1e-12)
    assert repr(law()) == "SwitchedLaw(3 columns, 3 bins, kernel_width=0.8)"


def test_its_draws_have_its_weights(rng):
    own = law()
    draws = own.draw(ROW, 200, rng)
    off = (1.0 - draws.bits[0]).sum(axis=1)
    np.testing.assert_allclose(draws.weights[0], np.exp(-off / (2.0 * WIDTH**2)))
    np.testing.assert_array_equal(
        draws.samples[0], np.where(draws.bits[0] == 1.0, ROW, BASELINE)
    )
    assert 0.35 < draws.bits.mean() < 0.65  # 600 fair coins, seven standard errors
    mean = ((1.0 + np.exp(-0.5 / WIDTH**2)) / 2.0) ** 3
    np.testing.assert_allclose(own.log_weights(ROW, np.array([WIDTH])), np.log(mean))


def test_it_has_other_widths_and_orders():
    own = law()
    assert own.with_width(2.0).kernel_width == 2.0
    order = np.array([2, 0, 1])
    assert [c.baseline for c in own.reordered(order).columns] == [2.0, 0.5, -1.0]

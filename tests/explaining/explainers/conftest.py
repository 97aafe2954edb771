"""Points to explain, and blocks that hold few of them."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.base.resources import Budget
from propopt.laws import perturbations


@pytest.fixture
def X():
    return np.random.default_rng(7).normal(size=(6, 3))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 13 perturbed points in three dimensions."""
    monkeypatch.setattr(perturbations, "PERTURBED_POINTS", Budget(8 * 3 * 13))

"""The points that metrics are tested at."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.normal(size=(6, 4))

"""The points that metrics are tested at."""

from __future__ import annotations

import pytest


@pytest.fixture
def X(rng):
    return rng.normal(size=(6, 4))

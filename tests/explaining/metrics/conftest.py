"""The points that metrics are tested at."""

import pytest


@pytest.fixture
def X(rng):
    return rng.normal(size=(6, 4))

"""What all tests have, those of examples in docstrings too."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def without_open_figures() -> Iterator[None]:
    """Figures that a test or an example opened are closed; more than 20 would warn."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")

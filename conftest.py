"""What all tests have, those of examples in docstrings too."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--quarter k``: every fourth file, so that four runs are the whole suite."""
    parser.addoption("--quarter", type=int, choices=range(4))


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Files are collected all the same: doctests of a package need it imported."""
    quarter = config.getoption("--quarter")
    if quarter is None:
        return
    kept = set(sorted({item.path for item in items})[quarter::4])
    left_out = [item for item in items if item.path not in kept]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.path in kept]


@pytest.fixture(autouse=True)
def without_open_figures() -> Iterator[None]:
    """Figures that a test or an example opened are closed; more than 20 would warn."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")

"""What all tests have, those of examples in docstrings too."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--part k/n``: every nth file, so that n runs are the whole suite."""
    parser.addoption("--part", type=_part, metavar="K/N")


def _part(text: str) -> tuple[int, int]:
    first, count = map(int, text.split("/"))
    if not 0 <= first < count:
        raise ValueError(text)
    return first, count


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Files are collected all the same: doctests of a package need it imported."""
    _mark_what_is_not_sampled(items)
    if (part := config.getoption("--part")) is None:
        return
    first, count = part
    kept = set(sorted({item.path for item in items})[first::count])
    left_out = [item for item in items if item.path not in kept]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.path in kept]


def _mark_what_is_not_sampled(items: list[pytest.Item]) -> None:
    """Of products of parameters k are everyday tests; the others are slow ones."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for family in families.values():
        marker = family[0].get_closest_marker("sampled")
        assert marker is not None, "it was asked for"
        (k,) = marker.args
        everyday = {len(family) * place // k for place in range(k)}
        for place, item in enumerate(family):
            if place not in everyday:
                item.add_marker("slow")


@pytest.fixture(autouse=True)
def without_open_figures() -> Iterator[None]:
    """Figures that a test or an example opened are closed; more than 20 would warn."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")

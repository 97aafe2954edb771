"""What all tests have, those of examples in docstrings too."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--part k/n``: every nth file; ``--turn k/n``: every nth set of parameters.

    So n runs are the whole suite. A turn has at least one set of each test. Without
    paths or ``--turn``, pytest takes the first fifth; ``--turn 0/1`` is everything.
    """
    parser.addoption("--part", type=_part, metavar="K/N")
    parser.addoption("--turn", type=_part, metavar="K/N")


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
    kept = set(items)
    if (part := config.getoption("--part")) is not None:
        first, count = part
        paths = set(sorted({item.path for item in items})[first::count])
        kept = {item for item in items if item.path in paths}
    kept -= of_other_turns(items, *_turn(config))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _turn(config: pytest.Config) -> tuple[int, int]:
    """Which turn it is: a fifth of the whole suite, and all of what is named."""
    turn: tuple[int, int] | None = config.getoption("--turn")
    if turn is not None:
        return turn
    whole = config.args_source is config.ArgsSource.TESTPATHS
    return (0, 5) if whole else (0, 1)


def pytest_report_header(config: pytest.Config) -> str:
    """Which sets of parameters are taken."""
    first, count = _turn(config)
    rest = "" if count == 1 else "; --turn 0/1 takes all"
    return f"parameters: turn {first}/{count}{rest}"


def _families(items: list[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """Items of the same test, which differ in parameters."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    yield from families.values()


def of_other_turns(items: list[pytest.Item], first: int, count: int) -> set[object]:
    """What has another turn; slow tests have none."""
    everyday = [item for item in items if item.get_closest_marker("slow") is None]
    return {
        item
        for family in _families(everyday)
        for place, item in enumerate(family)
        if place % count != first % min(count, len(family))
    }


def _mark_what_is_not_sampled(items: list[pytest.Item]) -> None:
    """Of products of parameters k are everyday tests; the others are slow ones."""
    sampled = [x for x in items if x.get_closest_marker("sampled") is not None]
    for family in _families(sampled):
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

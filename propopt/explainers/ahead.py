"""One step ahead: the next item is made while the last is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar


Item = TypeVar("Item")


def one_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items in the same order, each made by a thread of its own.

    It pays where making an item releases the interpreter, as random draws do. Items are
    made one after the other, so that what they draw does not change.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item

"""Trade-offs as one file, and back: every explanation checked as if it came alone.

The arrays of the n-th explanation are ``n.attributions``, and so on; the optimized ones
come first. Names of rows and columns, which explanations share, are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.output.archives import Format, archive_path, as_json
from propopt.results.conclusions.saved_ends import are_ends
from propopt.results.explanation import Explanation
from propopt.results.header import (
    Kinds,
    are_labels,
    check_header,
    is_count,
    is_size,
    is_text,
)
from propopt.results.later import settled
from propopt.results.saving import (
    WITHOUT_QUANTITY,
    WITHOUT_TARGET,
    packed,
    refuse_contradiction,
    unpacked,
)


_TRADE_OFFS = Format("propopt trade-offs", "saved trade-offs", version=3)


def write_trade_offs(
    path: str | Path, explanations: Iterable[Explanation], header: Mapping[str, Any]
) -> None:
    """Write explanations, and what the header of trade-offs says of them.

    Raises
    ------
    InvalidInput
        If the folder is not there, or something is not what can be loaded again.
    """
    target = archive_path(path)
    labels: list[object] = []
    parts: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for place, explanation in enumerate(explanations):
        try:
            part, own = packed(settled(explanation))
            _require_losses(part["losses"], header["losses"])
        except (TypeError, ValueError, RecursionError) as error:
            reason = f"explanation {place}: {error}"
            raise _TRADE_OFFS.unsavable(target, reason) from None
        parts.append({**part, "labels": _place_in(labels, part["labels"])})
        arrays |= {f"{place}.{name}": array for name, array in own.items()}
    whole = {**header, "labels": labels, "explanations": parts}
    try:
        check_header(json.loads(as_json(whole)), _KINDS)
    except (TypeError, InvalidInput) as error:
        raise _TRADE_OFFS.unsavable(target, error) from None
    _TRADE_OFFS.write(target, whole, arrays)


def read_trade_offs(path: str | Path) -> tuple[list[Explanation], dict[str, Any]]:
    """The explanations and the header that :func:`write_trade_offs` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, was written by a later version, or holds what no
        trade-offs have.
    FileNotFoundError
        If there is none.
    """
    source = archive_path(path)
    version, header, arrays = _TRADE_OFFS.read(source)
    try:
        header = header if version > 1 else {"ends": None, "units": None, **header}
        header = header if version > 2 else {"bounds": {}, **header}
        check_header(header, _KINDS)
        if version < 3:
            header = _completed(header)
            header["bounds"] = _sums_of(header)
        explanations = list(_explanations(header, arrays))
        if header["optimized"] > len(explanations):
            raise InvalidInput("optimized: more than there are explanations")
    except InvalidInput as error:
        raise _TRADE_OFFS.refusal(source, str(error)) from None
    return explanations, {name: header[name] for name in _OWN}


def _explanations(
    header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> Iterator[Explanation]:
    owners = _by_owner(arrays)
    for place, part in enumerate(header["explanations"]):
        try:
            labels = _at(header["labels"], part.get("labels"))
            fields = unpacked({**part, "labels": labels}, owners.pop(str(place), {}))
            refuse_contradiction(fields)
            own = [] if place < header["optimized"] else header["bounds"]
            _require_losses(fields["losses"], [*header["losses"], *own])
        except InvalidInput as error:
            raise InvalidInput(f"explanation {place}: {error}") from None
        yield Explanation(**fields)
    for owner in owners:
        raise InvalidInput(f"it also has arrays of {owner!r}")


def _completed(header: Mapping[str, Any]) -> dict[str, Any]:
    """The header with what no explanation had before versions 2 and 3."""
    parts = [
        {**WITHOUT_TARGET, **WITHOUT_QUANTITY, **part}
        for part in header["explanations"]
    ]
    return {**header, "explanations": parts}


def _sums_of(header: Mapping[str, Any]) -> dict[str, float]:
    """What rows had to add up to before version 3: baselines had no other bounds."""
    named = [part.get("losses") for part in header["explanations"]]
    if not named[header["optimized"] :] or not all(isinstance(x, dict) for x in named):
        return {}
    shared = set.intersection(*map(set, named)) - {*header["losses"]}
    return dict.fromkeys(sorted(shared), 0.0)


def _by_owner(arrays: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """The arrays of each explanation, by its number as text."""
    owners: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        owner, _, own = name.partition(".")
        owners.setdefault(owner, {})[own] = array
    return owners


def _place_in(header: list[object], labels: object) -> int:
    """Where these names stand among those of the header; from now on if not yet."""
    if labels not in header:
        header.append(labels)
    return header.index(labels)


def _at(header: Sequence[object], place: object) -> object:
    if type(place) is not int or not 0 <= place < len(header):
        raise InvalidInput(f"labels: expected a place below {len(header)}")
    return header[place]


def _require_losses(losses: Mapping[str, float], names: Sequence[str]) -> None:
    for name in names:
        if name not in losses:
            raise InvalidInput(f"losses: there is no {name}")


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(is_text, value))


def _are_names(value: object) -> bool:
    return _are_texts(value) and 0 < len(set(value)) == len(value)  # type: ignore[call-overload,arg-type]


def _are_limits(value: object) -> bool:
    return (
        isinstance(value, dict)
        and all(map(is_text, value))
        and all(map(is_size, value.values()))
    )


_OWN: Kinds = {
    "losses": (_are_names, "names of losses"),
    "failures": (_are_texts, "a list of text"),
    "interrupted": (lambda value: isinstance(value, bool), "true or false"),
    "optimized": (is_count, "an integer >= 0"),
    "ends": (are_ends, "losses at both ends, or null"),
    "units": (
        lambda value: value in (None, "gradient", "output", "scaled"),
        "'gradient', 'output', 'scaled' or null",
    ),
    "bounds": (_are_limits, "limits >= 0 by name"),
}
_KINDS: Kinds = {
    **_OWN,
    "labels": (
        lambda value: isinstance(value, list) and all(map(are_labels, value)),
        "names of points and features",
    ),
    "explanations": (
        lambda value: (
            isinstance(value, list) and all(isinstance(part, dict) for part in value)
        ),
        "a list of headers",
    ),
}

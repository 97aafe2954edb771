"""Explanations as files, and back: checked alike on both ways.

The fields of an explanation as a file, and back: checked alike on both ways. What
cannot be loaded is not saved. A stored certificate has to be that of the stored losses:
its value is their weighted sum, and no lower bound is above it.
"""

from __future__ import annotations

import json
import math
import reprlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias, final, get_args

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, archive_path, as_json
from propopt.base.text import Quantity, QuantityKind, plain_name
from propopt.tables.frames import Labels


# ---- What each key of a saved explanation's header may hold: checked, not trusted


def is_text(value: object) -> bool:
    """True for text that can be written; half a surrogate pair cannot."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def is_number(value: object) -> bool:
    """True for a finite number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def is_size(value: object) -> bool:
    """True for a finite number >= 0."""
    return is_number(value) and value >= 0  # type: ignore[operator]


def _is_price(value: object) -> bool:
    """True for a multiplier; that of a limit of zero is infinite."""
    return is_size(value) or value == math.inf


def is_count(value: object) -> bool:
    """True for an integer >= 0."""
    return is_size(value) and isinstance(value, int)


def is_positive(value: object) -> bool:
    """True for an integer >= 1."""
    return is_count(value) and value != 0


def are_texts(value: object) -> bool:
    """True for a list of text."""
    return isinstance(value, list) and all(map(is_text, value))


def _is_setting(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float) or is_text(value)


def _is_row_name(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or is_text(value)


def are_named(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    """Whether a value is a mapping from text to what fits."""

    def named(value: object) -> bool:
        return isinstance(value, dict) and all(
            is_text(name) and fits(item) for name, item in value.items()
        )

    return named


def _listed(value: object, fits: Callable[[object], bool]) -> bool:
    return value is None or (isinstance(value, list) and all(map(fits, value)))


def are_labels(value: object) -> bool:
    """True for names of points and of features, or null where there are none."""
    return (
        isinstance(value, dict)
        and value.keys() == {"points", "features"}
        and _listed(value["points"], _is_row_name)
        and _listed(value["features"], is_text)
    )


def _is_certificate(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    rest = {"violation": 0.0, "distance": 0.0, **value}
    kind, distance = rest.pop("kind", None), rest.pop("distance")
    return (
        rest.keys() == {"value", "lower_bound", "scale", "violation"}
        and all(map(is_size, rest.values()))
        and is_text(kind)
        and (distance is None or is_size(distance))
    )


def _is_target(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    rest = dict(value)
    source, n_blocks, relation = (rest.pop(key, None) for key in _WORDS_OF_TARGET)
    return (
        rest.keys() == {"value", "scale", "spread", "degrees"}
        and all(is_size(size) or size is None for size in rest.values())  # None: NaN
        and is_text(source)
        and is_count(n_blocks)
        and relation in ("about", "at most")
    )


_WORDS_OF_TARGET = ("source", "n_blocks", "relation")


def _is_solver(value: object) -> bool:
    return value is None or is_text(value)


def _is_unit(value: object) -> bool:
    return isinstance(value, str) and value in ("gradient", "output", "scaled")


def is_quantity(value: object) -> bool:
    """True for the fields of a quantity, or null."""
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != _QUANTITY:
        return False
    label, position, outcome = value["label"], value["position"], value["outcome"]
    return (
        is_text(value["model"])
        and value["kind"] in get_args(QuantityKind)
        and (label is None or is_text(label) or isinstance(label, bool | int | float))
        and (position is None or is_count(position))
        and (outcome is None or is_text(outcome))
    )


_QUANTITY = {field.name for field in fields(Quantity)}


Kinds: TypeAlias = Mapping[str, tuple[Callable[[object], bool], str]]
"""What each key of a header holds, and how that is said."""

KINDS: Kinds = {
    "method": (is_text, "text"),
    "labels": (are_labels, "names of points and features, or null"),
    "parameters": (are_named(_is_setting), "settings by name"),
    "weights": (are_named(is_size), "finite numbers >= 0 by name"),
    "losses": (are_named(is_number), "finite numbers by name"),
    "certificate": (_is_certificate, "the numbers of a certificate, or null"),
    "multipliers": (are_named(_is_price), "numbers >= 0 by name"),
    "solver": (_is_solver, "text or null"),
    "seconds": (is_size, "a finite number >= 0"),
    "units": (_is_unit, "'gradient', 'output' or 'scaled'"),
    "evaluations": (is_count, "an integer >= 0"),
    "target": (_is_target, "the numbers of a target error, or null"),
    "quantity": (is_quantity, "what is explained, or null"),
}
"""Of an explanation."""


def check_header(header: Mapping[str, Any], kinds: Kinds) -> None:
    """Refuse a header with other keys, or with values that no key of its holds."""
    for key in sorted(header.keys() ^ kinds.keys()):
        raise InvalidInput(f"its header has {'no' if key in kinds else 'also'} {key}")
    for key, (fits, expected) in kinds.items():
        if not fits(header[key]):
            got = reprlib.repr(header[key])
            raise InvalidInput(f"{key}: expected {expected}, got {got}")


# ---- Results as files: one JSON header and arrays, checked alike on both ways


Header: TypeAlias = Mapping[str, Any]
Arrays: TypeAlias = Mapping[str, Array]


def without_arrays(header: Header, arrays: Arrays) -> dict[str, Any]:
    """The header alone, where there are no arrays."""
    for name in arrays:
        raise InvalidInput(f"it also has the array {name!r}")
    return dict(header)


@final
@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """Files of one format: what cannot be loaded is not saved."""

    form: Format  # what the files are called, and their version
    kinds: Kinds  # what each key of the header may hold
    # from such a header and arrays to the fields of a result
    fields: Callable[[Header, Arrays], dict[str, Any]] = without_arrays

    def write(
        self, path: str | Path, header: Header, arrays: Arrays | None = None
    ) -> None:
        """Write a header and arrays to an ``.npz`` file."""
        target, own = archive_path(path), {} if arrays is None else arrays
        try:
            plain = json.loads(as_json(header))
            self._checked(plain, own)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.form.unsavable(target, error) from None
        self.form.write(target, plain, own)

    def read(self, path: str | Path) -> dict[str, Any]:
        """The fields of what :meth:`write` wrote."""
        source = archive_path(path)
        _, header, arrays = self.form.read(source)
        try:
            return self._checked(header, arrays)
        except InvalidInput as error:
            raise self.form.refusal(source, str(error)) from None

    def _checked(self, header: Header, arrays: Arrays) -> dict[str, Any]:
        check_header(header, self.kinds)
        return self.fields(header, arrays)


def plain_labels(labels: Labels) -> dict[str, Any]:
    """Names of points and features for a header."""
    points = labels.points
    return {
        "points": None if points is None else [plain_name(name) for name in points],
        "features": labels.features,
    }


def labels_of(names: Mapping[str, Any], shape: tuple[int, ...]) -> Labels:
    """The names that a header has of a table of this shape."""
    points, features = (
        None if names[noun] is None else tuple(names[noun])
        for noun in ("points", "features")
    )
    labels = Labels(points=points, features=features)
    labels.check(shape, "labels")
    return labels

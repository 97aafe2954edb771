"""The fields of an explanation as a file, and back: checked alike on both ways.

What cannot be loaded is not saved. A stored certificate has to be that of the stored
losses: its value is their weighted sum, and no lower bound is above it.
"""

from __future__ import annotations

import json
import reprlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from propopt._typing import Array
from propopt.certificate import Certificate
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.output.archives import archive_path, not_saved, read_archive
from propopt.output.files import written_whole
from propopt.tables.names import Labels, plain_name


FORMAT = "propopt explanation"
VERSION = 2
_NEW = {"units": "gradient", "evaluations": 0}
"""What version 1 had not, and what it means there."""

_ROUNDING = 1e-9
"""Relative: how far a certificate may be from the losses beside it."""

Fields = Mapping[str, Any]


def write_fields(path: str | Path, fields: Fields) -> None:
    """Write the fields of an explanation to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    target = archive_path(path)
    header = {key: fields[key] for key in _KINDS}
    labels, certificate = fields["labels"], fields["certificate"]
    points = labels.points
    header["labels"] = {
        "points": None if points is None else [plain_name(name) for name in points],
        "features": labels.features,
    }
    header["certificate"] = None if certificate is None else vars(certificate).copy()
    try:
        text = json.dumps({**_KIND, **header}, default=_as_number)
        _refuse_contradiction(_fields(json.loads(text), dict(_arrays(fields))))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{target}: cannot be saved: {error}") from None
    with written_whole(target) as draft:
        np.savez(draft, allow_pickle=False, header=np.array(text), **_arrays(fields))


def read_fields(path: str | Path) -> dict[str, Any]:
    """The fields of an explanation that :func:`write_fields` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, was written by a later version, or holds what no
        explanation has.
    FileNotFoundError
        If there is none.
    """
    source = archive_path(path)
    header, arrays = read_archive(source)
    version = header.get("version")
    if header.get("format") != FORMAT or not isinstance(version, int):
        raise not_saved(source, "its header is that of something else")
    if not 1 <= version <= VERSION:
        raise InvalidInput(
            f"{source}: written in format version {reprlib.repr(version)}; this "
            f"propopt reads version {VERSION}"
        )
    if version == 1:
        header = {**_NEW, **header}
    try:
        return _fields(header, arrays)
    except InvalidInput as error:
        raise not_saved(source, str(error)) from None


def trusted_fields(path: str | Path) -> dict[str, Any]:
    """As :func:`read_fields`, refused where certificate and losses contradict."""
    fields = read_fields(path)
    try:
        _refuse_contradiction(fields)
    except InvalidInput as error:
        raise not_saved(archive_path(path), str(error)) from None
    return fields


_KIND = {"format": FORMAT, "version": VERSION}


def _arrays(fields: Fields) -> dict[str, Array]:
    details = {f"details.{name}": array for name, array in fields["details"].items()}
    return {"attributions": fields["attributions"], **details}


def _as_number(value: object) -> object:
    """What JSON takes of a NumPy number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"expected numbers and text, got {type(value).__name__}")


def _fields(header: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """Header and arrays as an explanation has them, refused where it could not."""
    keys = {key: value for key, value in header.items() if key not in _KIND}
    for key in sorted(keys.keys() ^ _KINDS.keys()):
        raise InvalidInput(f"its header has {'no' if key in _KINDS else 'also'} {key}")
    for key, (fits, expected) in _KINDS.items():
        if not fits(keys[key]):
            got = reprlib.repr(keys[key])
            raise InvalidInput(f"{key}: expected {expected}, got {got}")
    attributions = _attributions(arrays)
    labels = _labels(keys["labels"], attributions.shape)
    certificate = keys["certificate"]
    return {
        **keys,
        "attributions": attributions,
        "labels": labels,
        "certificate": None if certificate is None else Certificate(**certificate),
        "details": _details(arrays),
    }


def _attributions(arrays: dict[str, Array]) -> Array:
    if "attributions" not in arrays:
        raise InvalidInput("it has no attributions")
    if arrays["attributions"].dtype.kind not in "fiu":
        raise InvalidInput("attributions: expected numbers")
    return read_array(arrays["attributions"], "attributions", ndim=2)


def _details(arrays: dict[str, Array]) -> dict[str, Array]:
    details = {}
    for name, array in arrays.items():
        if name != "attributions":
            if not (name.startswith("details.") and _is_text(name)):
                raise InvalidInput(f"it also has the array {name!r}")
            if array.dtype.kind not in "fiub":
                raise InvalidInput(
                    f"{name}: expected numbers, got {array.dtype}; object arrays and "
                    "text are not saved"
                )
            details[name.removeprefix("details.")] = array
    return details


def _labels(names: dict[str, Any], shape: tuple[int, ...]) -> Labels:
    points, features = (
        None if names[noun] is None else tuple(names[noun])
        for noun in ("points", "features")
    )
    labels = Labels(points=points, features=features)
    labels.check(shape, "labels")
    return labels


def _refuse_contradiction(fields: Fields) -> None:
    """Refuse a certificate that is not one of the losses beside it."""
    certificate = fields["certificate"]
    if certificate is None:
        return
    value, weights, losses = certificate.value, fields["weights"], fields["losses"]
    if not weights.keys() <= losses.keys():
        raise InvalidInput("certificate: not all weighted losses are there")
    found = sum(weight * losses[name] for name, weight in weights.items())
    if weights and not abs(found - value) <= _ROUNDING * value:
        raise InvalidInput(
            f"certificate: it is of the value {value!r}, and the losses give {found!r}"
        )
    if value > (1.0 + _ROUNDING) * certificate.scale:
        raise InvalidInput("certificate: its scale is below its value")
    excess = certificate.lower_bound - value
    if not certificate.violation and excess > _ROUNDING * certificate.scale:
        raise InvalidInput(
            f"certificate: its lower bound {certificate.lower_bound!r} is above its "
            f"value {value!r}"
        )


def _is_text(value: object) -> bool:
    """True for text that can be written; half a surrogate pair cannot."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def _is_size(value: object) -> bool:
    return _is_number(value) and value >= 0  # type: ignore[operator]


def _is_count(value: object) -> bool:
    return _is_size(value) and isinstance(value, int)


def _is_setting(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float) or _is_text(value)


def _is_row_name(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or _is_text(value)


def _named(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    """Whether a value is a mapping from text to what fits."""

    def named(value: object) -> bool:
        return isinstance(value, dict) and all(
            _is_text(name) and fits(item) for name, item in value.items()
        )

    return named


def _listed(value: object, fits: Callable[[object], bool]) -> bool:
    return value is None or (isinstance(value, list) and all(map(fits, value)))


def _are_labels(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"points", "features"}
        and _listed(value["points"], _is_row_name)
        and _listed(value["features"], _is_text)
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
        and all(map(_is_size, rest.values()))
        and _is_text(kind)
        and (distance is None or _is_size(distance))
    )


def _is_solver(value: object) -> bool:
    return value is None or _is_text(value)


def _is_unit(value: object) -> bool:
    return isinstance(value, str) and value in ("gradient", "output", "scaled")


_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "method": (_is_text, "text"),
    "labels": (_are_labels, "names of points and features, or null"),
    "parameters": (_named(_is_setting), "settings by name"),
    "weights": (_named(_is_size), "finite numbers >= 0 by name"),
    "losses": (_named(_is_number), "finite numbers by name"),
    "certificate": (_is_certificate, "the numbers of a certificate, or null"),
    "multipliers": (_named(_is_size), "finite numbers >= 0 by name"),
    "solver": (_is_solver, "text or null"),
    "seconds": (_is_size, "a finite number >= 0"),
    "units": (_is_unit, "'gradient', 'output' or 'scaled'"),
    "evaluations": (_is_count, "an integer >= 0"),
}
"""What each key of the header holds, and how that is said."""

"""The fields of an explanation as a file, and back: checked alike on both ways.

What cannot be loaded is not saved. A stored certificate has to be that of the stored
losses: its value is their weighted sum, and no lower bound is above it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from propopt._typing import Array
from propopt.certificate import Certificate
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.output.archives import Format, archive_path, as_json
from propopt.quantity import Quantity
from propopt.results.arrays import own_standard_errors
from propopt.results.checked_file import Arrays
from propopt.results.header import KINDS, check_header, is_text
from propopt.results.target_error import TargetError
from propopt.tables.names import Labels, plain_name


_EXPLANATION = Format("propopt explanation", "a saved explanation", version=5)
_BEFORE = {"units": "gradient", "evaluations": 0}
"""What version 1 had not, and what it means there."""

WITHOUT_TARGET = {"target": None}
"""What no version before 4 had."""

WITHOUT_QUANTITY = {"quantity": None}
"""What no version before 5 had."""

_RENAMED = {"details.standard_error": "standard_errors"}
"""What was called otherwise before version 3."""

_ROUNDING = 1e-9
"""Relative: how far a certificate may be from the losses beside it."""

SATISFIED = 1e-6
"""A violation up to this counts as none: the tolerance of solvers."""

Fields: TypeAlias = Mapping[str, Any]


def write_fields(path: str | Path, fields: Fields) -> None:
    """Write the fields of an explanation to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    target = archive_path(path)
    try:
        header, arrays = packed(fields)
    except (TypeError, ValueError, RecursionError) as error:
        raise _EXPLANATION.unsavable(target, error) from None
    _EXPLANATION.write(target, header, arrays)


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
    version, header, arrays = _EXPLANATION.read(source)
    if version < 2:
        header = {**_BEFORE, **header}
    if version < 4:
        header = {**WITHOUT_TARGET, **header}
    if version < 5:
        header = {**WITHOUT_QUANTITY, **header}
    if version < 3:
        arrays = {_RENAMED.get(name, name): array for name, array in arrays.items()}
    try:
        return unpacked(header, arrays)
    except InvalidInput as error:
        raise _EXPLANATION.refusal(source, str(error)) from None


def trusted_fields(path: str | Path) -> dict[str, Any]:
    """As :func:`read_fields`, refused where certificate and losses contradict."""
    fields = read_fields(path)
    try:
        refuse_contradiction(fields)
    except InvalidInput as error:
        raise _EXPLANATION.refusal(archive_path(path), str(error)) from None
    return fields


def packed(fields: Fields) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of an explanation, refused where they could not be read again.

    Raises
    ------
    InvalidInput, TypeError, ValueError, RecursionError
        With the reason.
    """
    header = {key: fields[key] for key in KINDS}
    certificate = fields["certificate"]
    header["labels"] = plain_labels(fields["labels"])
    header["certificate"] = None if certificate is None else vars(certificate).copy()
    header["target"] = _plain_target(fields["target"])
    quantity = fields["quantity"]
    header["quantity"] = None if quantity is None else quantity.as_fields()
    arrays = _arrays(fields)
    refuse_contradiction(unpacked(json.loads(as_json(header)), arrays))
    return header, arrays


def unpacked(header: Fields, arrays: Arrays) -> dict[str, Any]:
    """The fields of an explanation, refused where no explanation has them."""
    check_header(header, KINDS)
    attributions = _attributions(arrays)
    N, D = attributions.shape
    certificate, quantity = header["certificate"], header["quantity"]
    return {
        **header,
        "attributions": attributions,
        "labels": labels_of(header["labels"], (N, D)),
        "certificate": None if certificate is None else Certificate(**certificate),
        "target": _target(header["target"]),
        "quantity": None if quantity is None else Quantity(**quantity),
        "standard_errors": _standard_errors(arrays, (N, D)),
        "details": _details(arrays),
    }


def _plain_target(target: TargetError | None) -> dict[str, Any] | None:
    """JSON has no NaN: what is not known is null."""
    if target is None:
        return None
    fields = vars(target)
    return {
        key: None if isinstance(x, float) and math.isnan(x) else x
        for key, x in fields.items()
    }


def _target(fields: dict[str, Any] | None) -> TargetError | None:
    if fields is None:
        return None
    known: dict[str, Any] = {
        key: math.nan if x is None else x for key, x in fields.items()
    }
    return TargetError(**known)


def refuse_contradiction(fields: Fields) -> None:
    """Refuse a certificate that is not one of the losses beside it."""
    certificate = fields["certificate"]
    if certificate is None:
        return
    weights, losses = fields["weights"], fields["losses"]
    if not weights.keys() <= losses.keys():
        raise InvalidInput("certificate: not all weighted losses are there")
    value = sum(weight * losses[name] for name, weight in weights.items())
    if weights and not abs(value - certificate.value) <= _ROUNDING * certificate.value:
        raise InvalidInput(
            f"certificate: it is of the value {certificate.value!r}, and the losses "
            f"give {value!r}"
        )
    scale = certificate.scale
    if certificate.value > (1.0 + _ROUNDING) * scale:
        raise InvalidInput("certificate: its scale is below its value")
    most = certificate.value + _most_above(certificate, fields)
    if not certificate.lower_bound <= most:  # NaN is no reason
        raise InvalidInput(
            f"certificate: its lower bound {certificate.lower_bound!r} is above its "
            f"value {certificate.value!r}, by more than its violation "
            f"{certificate.violation:.3g} of constraints explains"
        )


def _most_above(certificate: Certificate, fields: Fields) -> float:
    """How far a lower bound may be above the value of what violates its constraints.

    L(W) = F(W) + Σ μ (loss(W) − limit) is no less than its minimum, so that a bound is
    above the value by no more than the violation of the limits, or totals, times what
    their multipliers say these cost. A limit of zero has no finite one: F grows with
    the distance from what it allows, whose square the violation is. Attributions that
    violate by more than :data:`SATISFIED` claim no optimum.
    """
    violation, scale = certificate.violation, certificate.scale
    allowed = _ROUNDING * scale
    if not violation:
        return allowed
    per_total = [
        float(np.abs(array).sum())
        for name, array in fields["details"].items()
        if name.endswith(".multiplier")
    ]
    finite = {k: mu for k, mu in fields["multipliers"].items() if math.isfinite(mu)}
    losses = fields["losses"]
    price = sum(mu * abs(losses.get(name, 0.0)) for name, mu in finite.items())
    price += sum(per_total) * float(np.abs(fields["attributions"]).sum(axis=1).max())
    if len(finite) < len(fields["multipliers"]):
        allowed += math.sqrt(violation) * scale
    if violation > SATISFIED and not per_total:
        return math.inf
    return allowed + 2.0 * violation * price


def _arrays(fields: Fields) -> dict[str, Array]:
    errors = fields["standard_errors"]
    return {
        "attributions": fields["attributions"],
        **({} if errors is None else {"standard_errors": errors}),
        **{f"details.{name}": array for name, array in fields["details"].items()},
    }


def _attributions(arrays: Arrays) -> Array:
    if "attributions" not in arrays:
        raise InvalidInput("it has no attributions")
    if arrays["attributions"].dtype.kind not in "fiu":
        raise InvalidInput("attributions: expected numbers")
    return read_array(arrays["attributions"], "attributions", ndim=2)


def _standard_errors(arrays: Arrays, shape: tuple[int, int]) -> Array | None:
    errors = arrays.get("standard_errors")
    if errors is not None and errors.dtype.kind not in "fiu":
        raise InvalidInput("standard_errors: expected numbers")
    return own_standard_errors(errors, shape)


def _details(arrays: Arrays) -> dict[str, Array]:
    details = {}
    for name, array in arrays.items():
        if name not in ("attributions", "standard_errors"):
            _refuse_detail(name, array)
            details[name.removeprefix("details.")] = array
    return details


def _refuse_detail(name: str, array: Array) -> None:
    if not (name.startswith("details.") and is_text(name)):
        raise InvalidInput(f"it also has the array {name!r}")
    if array.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name}: expected numbers, got {array.dtype}; object arrays and text are "
            "not saved"
        )


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

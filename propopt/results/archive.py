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
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, final, get_args

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import as_floats, is_sealed, read_array, sealed
from propopt.base.errors import InvalidInput
from propopt.base.files import Format, archive_path, as_json, write_csv
from propopt.base.text import Quantity, QuantityKind, plain_name
from propopt.results.certificate import Certificate
from propopt.results.target_error import TargetError
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


class Conclusion(ABC):
    """What is concluded of an explanation: a table, and two files."""

    _file: ClassVar[CheckedFile]

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """What is known, as a table with names."""

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; what is not defined is an empty cell."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file: arrays, and one JSON header; no pickles."""
        self._file.write(path, *self._packed())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        return cls(**cls._file.read(path))

    @abstractmethod
    def _packed(self) -> tuple[Header, Arrays]:
        """Header and arrays of the file."""


# ---- The arrays of an explanation: read-only, and copied where someone could write


def own_attributions(W: Any) -> Attributions:
    """Finite numbers (N, D)."""
    if is_sealed(W) and W.ndim == 2 and W.dtype == np.float64:
        return W
    return read_array(W, "attributions", ndim=2)


def own_standard_errors(errors: Any, shape: tuple[int, int]) -> Array | None:
    """None, or numbers (N, D) that are not negative; not finite where none is known."""
    if errors is None:
        return None
    own = is_sealed(errors) and errors.dtype == np.float64
    array = errors if own else as_floats(errors, "standard_errors")
    if array.shape != shape:
        raise InvalidInput(
            f"standard_errors: expected the shape of the attributions, {shape}, got "
            f"{array.shape}"
        )
    if (array < 0.0).any():
        raise InvalidInput("standard_errors: expected numbers >= 0")
    return sealed(array)


def own_details(details: Mapping[str, Array]) -> Mapping[str, Array]:
    """Arrays of any kind by name."""
    if all(map(is_sealed, details.values())):
        return details
    return {
        name: array if is_sealed(array) else sealed(np.array(array))
        for name, array in details.items()
    }


def seal_unpickled(state: Mapping[str, Any]) -> None:
    """Make arrays read-only that come out of a pickle, as from a worker."""
    arrays = state["attributions"], state["standard_errors"]
    for array in (*arrays, *state["details"].values()):
        if isinstance(array, np.ndarray):
            array.setflags(write=False)


# ---- The fields of an explanation as a file, and back: checked alike on both ways


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
    """Write the fields of an explanation to an ``.npz`` file."""
    target = archive_path(path)
    try:
        header, arrays = packed(fields)
    except (TypeError, ValueError, RecursionError) as error:
        raise _EXPLANATION.unsavable(target, error) from None
    _EXPLANATION.write(target, header, arrays)


def read_fields(path: str | Path) -> dict[str, Any]:
    """The fields of an explanation that :func:`write_fields` wrote."""
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
    """Header and arrays of an explanation, refused if they could not be read again."""
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

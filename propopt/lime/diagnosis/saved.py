"""A diagnosis as a file, and back: JSON has no NaN, so what is not known is null."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from propopt.errors import InvalidInput
from propopt.lime.diagnosis.finding import LimeFinding, QuietRule
from propopt.output.archives import Format
from propopt.results.checked_file import Arrays, CheckedFile, Header, without_arrays
from propopt.results.conclusions.saved_shares import with_nan
from propopt.results.header import (
    Kinds,
    are_labels,
    is_count,
    is_number,
    is_positive,
    is_text,
)
from propopt.results.saving import labels_of, plain_labels


if TYPE_CHECKING:
    from propopt.lime.diagnosis.result import LimeDiagnosis


def write_diagnosis(path: str | Path, diagnosis: LimeDiagnosis) -> None:
    """Write to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    _FILE.write(
        path,
        {
            "findings": [_plain(asdict(item)) for item in diagnosis.told],
            "quiet": [_plain(asdict(item)) for item in diagnosis.quiet],
            "shape": list(diagnosis.shape),
            "n_samples": diagnosis.n_samples,
            "source": diagnosis.source,
            "labels": plain_labels(diagnosis.labels),
        },
    )


def read_diagnosis(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_diagnosis` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, or holds what no such result has.
    FileNotFoundError
        If there is none.
    """
    return _FILE.read(path)


def _fields(header: Header, arrays: Arrays) -> dict[str, Any]:
    N, D = header["shape"]
    for item in [*header["findings"], *header["quiet"]]:
        _refuse_outside(item, (N, D))
    told = [LimeFinding(**_known(item)) for item in header["findings"]]
    return {
        **without_arrays(header, arrays),
        "findings": tuple(item for item in told if not item.is_note),
        "notes": tuple(item for item in told if item.is_note),
        "quiet": tuple(QuietRule(**_known(item)) for item in header["quiet"]),
        "shape": (N, D),
        "labels": labels_of(header["labels"], (N, D)),
    }


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """Infinite numbers as text, and null for what is not known."""
    number = item["number"]
    finite = is_number(number)
    return {**item, "number": number if finite else _WORDS.get(number)}


_WORDS: Final = {float("inf"): "inf", float("-inf"): "-inf"}


def _known(item: Mapping[str, Any]) -> dict[str, Any]:
    number = item["number"]
    known = float(number) if isinstance(number, str) else with_nan(number)
    return {**item, "number": float(known)}


def _refuse_outside(item: Mapping[str, Any], shape: tuple[int, int]) -> None:
    for noun, count in zip(("row", "column"), shape, strict=True):
        if item[noun] is not None and item[noun] >= count:
            raise InvalidInput(f"{noun}: there is no {noun} {item[noun]}")


def _is_item(keys: set[str]) -> Callable[[object], bool]:
    def item(value: object) -> bool:
        return (
            isinstance(value, dict)
            and value.keys() == keys
            and all(_fits(name, part) for name, part in value.items())
        )

    return item


def _fits(name: str, part: object) -> bool:
    match name:
        case "rule" | "sentence" | "remedy":
            return is_text(part)
        case "row" | "column":
            return part is None or is_count(part)
        case "number":
            return part is None or part in ("inf", "-inf") or is_number(part)
    return is_number(part)


def _listed(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_count, value))


_QUIET: Final = {"rule", "row", "column", "number", "threshold", "sentence"}
_KINDS: Final[Kinds] = {
    "findings": (_listed(_is_item(_QUIET | {"remedy", "severity"})), "findings"),
    "quiet": (_listed(_is_item(_QUIET)), "rules that found nothing"),
    "shape": (_is_shape, "two integers >= 0"),
    "n_samples": (is_positive, "an integer >= 1"),
    "source": (is_text, "text"),
    "labels": (are_labels, "names of points and features, or null"),
}
_FILE: Final = CheckedFile(
    form=Format("propopt lime diagnosis", "a saved diagnosis", version=1),
    kinds=_KINDS,
    fields=_fields,
)

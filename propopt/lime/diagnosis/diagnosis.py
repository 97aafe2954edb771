"""What LIME's coefficients hide: findings, notes, words, files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.errors import InvalidInput
from propopt.base.files import Format, write_csv
from propopt.base.html import html_card, html_table
from propopt.base.text import in_html, printable
from propopt.lime.diagnosis.evidence import LimeFinding, QuietRule
from propopt.results.archive import (
    Arrays,
    CheckedFile,
    Header,
    Kinds,
    are_labels,
    is_count,
    is_number,
    is_positive,
    is_text,
    labels_of,
    plain_labels,
    without_arrays,
)
from propopt.results.certain import plural
from propopt.results.shares import with_nan
from propopt.tables.frames import Labels


# ---- What coefficients of LIME hide, as a table with a sentence for each thing found


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


# ---- A diagnosis as a table, as text for a terminal and as a card


_WIDTH = 88


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        printable(text), _WIDTH, initial_indent="    ", subsequent_indent="    "
    )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class LimeDiagnosis:
    """What was looked for in coefficients of LIME, and found.

    Parameters
    ----------
    findings : tuple of LimeFinding
        What misleads most first.
    notes : tuple of LimeFinding
        What is so and misleads hardly anybody: severities below 0.25.
    quiet : tuple of QuietRule
        Rules that found nothing, each with the number that came nearest, or why it was
        not looked for.
    shape : (int, int)
        N and D.
    n_samples : int
        Of the runs that it is about.
    source : str
        That of the coefficients: ``"exact"``, or how they were estimated.
    labels : Labels
        Names of rows and columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).uniform(-10.0, 10.0, (500, 3))
    >>> model = LinearRegression().fit(X, X @ [5.0, 1.0, 3.0])
    >>> law = po.lime.TabularLaw.from_data(X, n_bins=5)
    >>> lime = po.lime.limits(model.predict, np.zeros((1, 3)), law, data=X)
    >>> found = lime.diagnose()
    >>> "cancellation by binning" in found.rules
    True
    """

    findings: tuple[LimeFinding, ...]
    quiet: tuple[QuietRule, ...]
    shape: tuple[int, int]
    n_samples: int
    source: str
    labels: Labels = Labels()
    notes: tuple[LimeFinding, ...] = ()

    @classmethod
    def of_told(
        cls,
        told: Sequence[LimeFinding | QuietRule],
        shape: tuple[int, int],
        labels: Labels,
        n_samples: int,
        source: str,
    ) -> LimeDiagnosis:
        """What rules told of limits at rows, or at documents.

        Parameters
        ----------
        told : sequence of LimeFinding or QuietRule
            In the order of the rules.
        shape : (int, int)
            N and D.
        labels : Labels
            Names of rows and columns.
        n_samples : int
            Of the runs.
        source : str
            How coefficients were had.
        """
        findings = [item for item in told if isinstance(item, LimeFinding)]
        findings.sort(key=lambda finding: -finding.severity)
        return cls(
            findings=tuple(item for item in findings if not item.is_note),
            notes=tuple(item for item in findings if item.is_note),
            quiet=tuple(item for item in told if isinstance(item, QuietRule)),
            shape=shape,
            n_samples=n_samples,
            source=source,
            labels=labels,
        )

    @property
    def told(self) -> tuple[LimeFinding, ...]:
        """Findings and notes, what misleads most first."""
        return self.findings + self.notes

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that found something, what misleads most first; notes aside."""
        return tuple(dict.fromkeys(finding.rule for finding in self.findings))

    def of(self, rule: str) -> tuple[LimeFinding, ...]:
        """What a rule found, notes behind findings.

        Parameters
        ----------
        rule : str
            Its name.
        """
        return tuple(item for item in self.told if item.rule == rule)

    def of_row(self, row: Hashable) -> LimeDiagnosis:
        """What was found about one row, or about all of them.

        Rules that found something at other rows alone are quiet here.

        Parameters
        ----------
        row : label or int
            Its name in the index of X, or its position where X had no names.

        Raises
        ------
        InvalidInput
            If there is none.
        """
        n = self.labels.position(row, self.shape[0])
        own, notes = (
            tuple(item for item in items if item.row in (n, None))
            for items in (self.findings, self.notes)
        )
        here = {item.rule for item in own + notes}
        rules = dict.fromkeys(item.rule for item in self.told)
        elsewhere = tuple(
            _quiet_at(n, self.of(rule)[0]) for rule in rules if rule not in here
        )
        quiet = self.quiet + elsewhere
        return replace(self, findings=own, notes=notes, quiet=quiet)

    def to_frame(self) -> pd.DataFrame:
        """A row for each finding, each note, and each rule that found nothing.

        ``kind`` is ``"finding"``, ``"note"`` or ``"quiet"``; ``found`` is True of
        findings alone.
        """
        rows = [self._record(item) for item in self.told]
        rows += [self._record(item) for item in self.quiet]
        columns = [
            "rule",
            "found",
            "row",
            "feature",
            "number",
            "threshold",
            "severity",
            "sentence",
            "remedy",
            "kind",
        ]
        cells = dict(zip(columns, zip(*rows, strict=True), strict=True))
        named = {
            key: pd.Series(cells.pop(key), dtype=object) for key in ("row", "feature")
        }
        return pd.DataFrame({**cells, **named})[columns]

    def in_full(self) -> str:
        """The text of ``repr``, with each rule's note and each number that was near."""
        return self._text(in_full=True)

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; what is not known is an empty cell."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file with one JSON header.

        Raises
        ------
        InvalidInput
            If the folder is not there.
        """
        header = {
            "findings": [_plain(asdict(item)) for item in self.told],
            "quiet": [_plain(asdict(item)) for item in self.quiet],
            "shape": list(self.shape),
            "n_samples": self.n_samples,
            "source": self.source,
            "labels": plain_labels(self.labels),
        }
        _FILE.write(path, header)

    @classmethod
    def load(cls, path: str | Path) -> LimeDiagnosis:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        return cls(**_FILE.read(path))

    def __repr__(self) -> str:
        """Each rule that found something with its worst, then the others: lines."""
        return self._text(in_full=False)

    def _text(self, *, in_full: bool) -> str:
        lines = [f"LimeDiagnosis({printable(self._title())})"]
        for rule, result in self._groups():
            lines.append(printable(f"- {rule}: {self._head(result)}"))
            lines += _wrapped(f"{result[0].sentence}.")
            lines += _wrapped(f"What would do: {result[0].remedy}.")
        if in_full:
            for rule, notes in self._notes().items():
                lines.append(printable(f"- note, {rule}: {self._head(notes)}"))
                lines += _wrapped(f"{notes[0].sentence}.")
            lines += [printable(line) for line in self._quiet_lines()]
        else:
            lines += [printable(f"- {line}") for line in self._other_rules()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A card: a title, a table of what was found, and what was not."""
        rows = [
            [
                in_html(rule),
                f"{found[0].number:.3g}",
                f"{found[0].threshold:.3g}",
                f"<b>{in_html(self._head(found))}</b>: {in_html(found[0].sentence)}. "
                f"<i>{in_html(found[0].remedy)}</i>",
            ]
            for rule, found in self._groups()
        ]
        table = html_table(("rule", "number", "threshold", ""), rows) if rows else ""
        others = "<br>".join(map(in_html, self._other_rules()))
        in_full = "<br>".join(
            [
                *(
                    in_html(f"note, {rule}: {self._head(notes)}: {notes[0].sentence}")
                    for rule, notes in self._notes().items()
                ),
                *map(in_html, self._quiet_lines()),
            ]
        )
        details = f"<details><summary>{others}</summary>{in_full}</details>"
        return html_card([f"<b>{in_html(self._title())}</b>", table, details])

    def _title(self) -> str:
        """What it is about."""
        N, D = self.shape
        return (
            f"{plural(N, 'row')}, {plural(D, 'feature')}; coefficients {self.source}, "
            f"runs of {self.n_samples:,} samples: "
            f"{plural(len(self.findings), 'finding')} of "
            f"{plural(len(self.rules), 'rule')}"
        )

    def _head(self, result: tuple[LimeFinding, ...]) -> str:
        """Where the worst of some findings is, and how many others there are."""
        row, feature = self._where(result[0])
        parts = [] if row is None or self.shape[0] == 1 else [f"row {row}"]
        parts += [] if feature is None else [feature]
        more = f" and {len(result) - 1} more" if len(result) > 1 else ""
        return f"{', '.join(parts) or 'all'}{more}"

    def _where(
        self, item: LimeFinding | QuietRule
    ) -> tuple[Hashable | None, str | None]:
        """Names of the row and the column; None for all of them."""
        N, D = self.shape
        rows = range(N) if self.labels.points is None else self.labels.points
        names = self.labels.feature_names(D)
        return (
            None if item.row is None else rows[item.row],
            None if item.column is None else names[item.column],
        )

    def _groups(self) -> Iterator[tuple[str, tuple[LimeFinding, ...]]]:
        """Findings by rules, what misleads most first."""
        for rule in self.rules:
            yield rule, tuple(item for item in self.findings if item.rule == rule)

    def _notes(self) -> dict[str, tuple[LimeFinding, ...]]:
        """Notes by rules."""
        rules = dict.fromkeys(item.rule for item in self.notes)
        return {
            rule: tuple(item for item in self.notes if item.rule == rule)
            for rule in rules
        }

    def _other_rules(self) -> Iterator[str]:
        """A line for notes, and one for rules that found nothing."""
        notes = self._notes()
        if notes:
            each = ", ".join(f"{rule} ({len(items)})" for rule, items in notes.items())
            yield f"notes, which hardly mislead: {each}"
        quiet = {item.rule for item in self.quiet}
        if quiet:
            other = "other " if self.told else ""
            yield f"{len(quiet)} {other}rule{'s'[: len(quiet) > 1]} found nothing"

    def _quiet_lines(self) -> Iterator[str]:
        """Rules that found nothing, with how near they came."""
        for item in self.quiet:
            if np.isnan(item.number):
                continue
            row, feature = self._where(item)
            named = [] if row is None or self.shape[0] == 1 else [f"row {row}"]
            named += [] if feature is None else [feature]
            place = f" ({', '.join(named)})" if named else ""
            yield (
                f"- {item.rule}: {item.sentence}{place}, threshold {item.threshold:.3g}"
            )

    def _record(self, item: LimeFinding | QuietRule) -> list[Any]:
        row, feature = self._where(item)
        kind = "quiet"
        if isinstance(item, LimeFinding):
            kind = "note" if item.is_note else "finding"
        return [
            item.rule,
            kind == "finding",
            row,
            feature,
            item.number,
            item.threshold,
            item.severity if isinstance(item, LimeFinding) else np.nan,
            item.sentence,
            item.remedy if isinstance(item, LimeFinding) else "",
            kind,
        ]


def _quiet_at(n: int, elsewhere: LimeFinding) -> QuietRule:
    """A rule that found something, but not at row n."""
    return QuietRule(
        rule=elsewhere.rule,
        row=n,
        column=None,
        number=np.nan,
        threshold=elsewhere.threshold,
        sentence="nothing found at this row",
    )

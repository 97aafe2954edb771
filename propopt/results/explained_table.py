"""Explained rows in a folder of Parquet files, with sums over all of them.

A folder has one ``_propopt.json``, which says what was explained and is written first,
and parts of equally many rows, ``part-000000.parquet`` and so on. Each part is written
atomically, with the digest of all its bytes. Its metadata has the sums of its rows, so
the summary of all rows reads no row. Readers of Parquet ignore files that begin with an
underscore.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Attributions, Values, largest_first
from propopt.base.checks import errors_of, read_count
from propopt.base.codecs import Members, record_codec
from propopt.base.declared import Declared, field
from propopt.base.document import (
    Chapter,
    Document,
    Facts,
    Span,
    shape_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.files import as_json, atomic_write
from propopt.base.row_sample import RowSample
from propopt.base.suggestions import NameKind
from propopt.base.text import Quantity, in_short, plural
from propopt.losses.faithfulness import Units, units_in_words
from propopt.proofs.near_optimal import OrderBy
from propopt.proofs.optimum import Parameter, largest_gap_fact, sampling_fact
from propopt.proofs.sampling_error import TargetError
from propopt.results.clear import Clear, unit_text
from propopt.results.explanation import Explanation
from propopt.results.explanation_document import (
    base_facts,
    feature_table,
    mixtures_facts,
    positions_by_size,
    sign_text,
    size_columns,
)
from propopt.results.reasons import LEAST_SHARE, MOST_LISTED, Reasons
from propopt.results.result import Result
from propopt.results.stable import N_REASONS, Towards
from propopt.tables.frames import Labels, refuse_repeated


MANIFEST: Final = "_propopt.json"
"""The file of a folder that says what was explained."""

_FORMAT: Final = "propopt explained table"
_VERSION: Final = 3
_METADATA: Final = b"propopt"
"""The key of the sums in the metadata of a part."""
_SEAL: Final = b"\npropopt sha256 "
"""What stands before the digest of a part, at the end of its sums."""
_UNSEALED: Final = b"0" * 64
"""The digest is that of the part with this in its place."""


# ---- A folder: its manifest and its parts


@final
class TableHeader(Declared):
    """What a folder of explained rows contains, known before its first row."""

    explainer: str = field()  # SHA-256 of the fitted explainer
    source: str = field()  # SHA-256 of what is known of the explained table
    version: str = field()  # of propopt
    n_rows: int = field(low=1)
    part_rows: int = field(low=1)  # rows of each part but the last
    copied: tuple[str, ...] = field()  # columns that are copied from the source
    features: tuple[str, ...] = field(nonempty=True)
    numbers: tuple[str, ...] = field(nonempty=True)  # base, prediction, gap and error
    # lists of a number for each feature: the targets, and errors of attributions
    cells: tuple[str, str] = field()
    row_size: float = field(low=0.0)  # of the reference rows
    units: Units = field()
    quantity: Quantity | None = field(default=None)
    background: str | None = field(default=None)
    together: tuple[tuple[str, ...], ...] = field(default=())
    parameters: Mapping[str, Parameter] = field(
        factory=dict, missing=True, infinite=True
    )

    def validate(self) -> None:
        """Refuse columns with one name."""
        refuse_repeated((*self.columns, *self.cells), "features")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the parts with one cell for each row, in order."""
        return (*self.copied, *self.features, *self.numbers)

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return -(-self.n_rows // self.part_rows)

    def rows_of(self, part: int) -> range:
        """The rows of a part."""
        first = part * self.part_rows
        return range(first, min(first + self.part_rows, self.n_rows))

    @property
    def text(self) -> str:
        """The manifest."""
        plain = record_codec(TableHeader).pack(self, "", Members({}, []))
        header = {"format": _FORMAT, "format_version": _VERSION, **plain}
        return json.dumps(json.loads(as_json(header)), indent=1) + "\n"

    @property
    def digest(self) -> str:
        """The SHA-256 of the manifest, which each part repeats."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """The manifest of a folder; None if there is none."""
        path = folder / MANIFEST
        try:
            plain = json.loads(path.read_text(encoding="ascii"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{path}: it cannot be read: {error}") from None
        kind = isinstance(plain, dict) and plain.pop("format", None)
        if kind != _FORMAT or plain.pop("format_version", None) != _VERSION:
            raise InvalidInput(f"{path}: expected the format {_FORMAT} {_VERSION}")
        with errors_of(str(path)):
            header: Self = record_codec(cls).unpack(plain, "", Members({}, []))
            header.validate()
        return header


def path_of_part(folder: Path, part: int) -> Path:
    """The file of a part."""
    return folder / f"part-{part:06d}.parquet"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PartSums:
    """Sums over the rows of a part, and their new categories."""

    sums: Values  # (D,): Σ w
    sizes: Values  # (D,): Σ |w|
    squares: Values  # (D,): Σ w²
    raises: Values  # (D,): how many w > 0
    lowers: Values  # (D,): how many w < 0
    ends: Values  # sums of base value and prediction, if there are any
    gap: float  # the largest
    n_new: int  # rows with categories that do not occur in data
    new: Sequence[str]  # which
    target: TargetError

    @classmethod
    def of(
        cls,
        table: Attributions,
        n_features: int,
        new: Mapping[str, int],
        errors: Sequence[TargetError],
    ) -> Self:
        """The sums of attributions, their ends, gaps and errors (n, ...)."""
        columns = np.ascontiguousarray(table.T)  # sums along rows are pairwise
        W = columns[:n_features]
        ends = columns[n_features:-2]
        gaps = columns[-2]
        return cls(
            sums=W.sum(axis=1),
            sizes=np.abs(W).sum(axis=1),
            squares=(W**2).sum(axis=1),
            raises=(W > 0.0).sum(axis=1).astype(float),
            lowers=(W < 0.0).sum(axis=1).astype(float),
            ends=ends.sum(axis=1),
            gap=float(gaps.max()),
            n_new=sum(new.values()),
            new=[*new],
            target=TargetError.joined(errors),
        )

    def metadata(self, header: TableHeader, part: int) -> dict[bytes, bytes]:
        """The sums for the metadata of a part."""
        plain = {
            key: value.tolist() if isinstance(value, np.ndarray) else value
            for key, value in asdict(self).items()
        }
        text = as_json([header.digest, part, plain]).encode()
        return {_METADATA: text + b"\n" + _sha256(text) + _SEAL + _UNSEALED}

    @classmethod
    def read(cls, folder: Path, header: TableHeader, part: int) -> Self | None:
        """The sums of a finished part; None if it is not finished.

        Rows are not read, so they may be damaged: :func:`read_part` reads all bytes.
        """
        parquet = require("pyarrow.parquet")
        try:
            metadata = parquet.read_metadata(path_of_part(folder, part))
            text, digest_of_text, _ = metadata.metadata[_METADATA].rsplit(b"\n", 2)
            if _sha256(text) != digest_of_text:
                return None
            digest, number, plain = json.loads(text)
            fields: dict[str, Any] = {
                name: value if name in _SCALARS else np.array(value, np.float64)
                for name, value in plain.items()
            }
            sums = cls(**fields | {"target": TargetError(**fields["target"])})
        except (OSError, ValueError, LookupError, TypeError):  # absent, or not of ours
            return None
        return sums if (digest, number) == (header.digest, part) else None


_SCALARS: Final = ("gap", "n_new", "new", "target")
"""The sums that are no arrays."""


# ---- The result


class ExplainedTable(
    Result, kind="propopt explained table", noun="a saved explained table", version=2
):
    """Explained rows of a large table, in a folder of Parquet files.

    :meth:`summary` has the mean size and direction of each feature over all rows, from
    sums that were computed along with them. Rows stay in the folder: :meth:`parts`
    reads one file after the other, :meth:`rows` reads some of them as an explanation,
    and other programs read the folder as one table of Parquet. :meth:`load` takes the
    folder, or a file of :meth:`save`, which contains the summary and the path of the
    folder.

    Parameters
    ----------
    folder : str
        The folder of the parts.
    header : TableHeader
        What was explained: ``n_rows``, ``features``, ``columns``, ``units``,
        ``quantity``, ``parameters``, and digests of explainer and source.
    sums, sizes, squares : array (D,)
        Σ w, Σ |w| and Σ w² over all rows.
    raises, lowers : array (D,)
        The numbers of rows with w > 0 and with w < 0.
    base_value, prediction : float or None
        Means over all rows; None for slopes.
    gap : float
        The largest certified relative gap of a row.
    n_new : int
        The number of rows with categories that do not occur in ``data``.
    new : tuple of str
        Some of these categories.
    target : TargetError
        The error of sampled contributions or slopes, over all rows.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd, propopt as po
    >>> import pyarrow as pa
    >>> X = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    >>> explainer = po.Explainer(lambda X: X.a * X.b, data=X).fit()
    >>> folder = tempfile.TemporaryDirectory()
    >>> rows = pa.Table.from_pandas(X)
    >>> explained = explainer.explain(rows, to=f"{folder.name}/rows")
    >>> explained.shape, list(explained.summary().index)
    ((40, 2), ['b', 'a'])
    >>> list(next(explained.parts()).columns)
    ['a', 'b', 'base_value', 'prediction', 'gap', 'error']
    >>> explained.reasons(rows=[39]).features
    ('a', 'b')
    >>> folder.cleanup()
    """

    folder: str = field()
    header: TableHeader = field()
    sums: Values = field("D")
    sizes: Values = field("D", low=0.0)
    squares: Values = field("D", low=0.0)
    raises: Values = field("D", low=0.0)
    lowers: Values = field("D", low=0.0)
    base_value: float | None = field(default=None)
    prediction: float | None = field(default=None)
    gap: float = field(low=0.0)
    n_new: int = field(low=0, default=0)
    new: tuple[str, ...] = field(default=())
    target: TargetError = field()

    _words: ClassVar[NameKind | None] = "explanation"

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a folder of explained rows, or a file that :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the folder has no explained rows, or some parts are missing.
        """
        if not Path(path).is_dir():
            return super().load(path)
        folder = Path(path)
        header = TableHeader.read(folder)
        if header is None:
            raise InvalidInput(
                f"{folder}: there is no {MANIFEST}, so no explained rows"
            )
        parts = [PartSums.read(folder, header, n) for n in range(header.n_parts)]
        missing = [n for n, part in enumerate(parts) if part is None]
        if missing:
            first = path_of_part(folder, missing[0]).name
            raise InvalidInput(
                f"{folder}: {len(missing):,} of {plural(header.n_parts, 'part')} are "
                f"missing or broken, first {first}; {_REMADE}"
            )
        return cls._of(folder, header, [part for part in parts if part is not None])

    @classmethod
    def _of(cls, folder: Path, header: TableHeader, parts: Sequence[PartSums]) -> Self:
        """Combine the sums of all parts; each sum is rounded once."""

        def total(name: str) -> list[float]:
            columns = zip(
                *(getattr(part, name).tolist() for part in parts), strict=True
            )
            return [math.fsum(column) for column in columns]

        ends: Sequence[float | None] = [x / header.n_rows for x in total("ends")]
        ends = ends or [None, None]
        return cls(
            folder=os.path.abspath(folder),
            header=header,
            base_value=ends[0],
            prediction=ends[1],
            gap=max(part.gap for part in parts),
            n_new=sum(part.n_new for part in parts),
            new=tuple(dict.fromkeys(text for part in parts for text in part.new)),
            target=TargetError.joined([part.target for part in parts]),
            **{name: np.array(total(name)) for name in _SUMS},
        )

    def validate(self) -> None:
        """Raise an error for sums that no rows have."""
        n = self.header.n_rows
        D = len(self.header.features)
        if len(self.sums) != D:
            raise InvalidInput(f"sums: expected {D} numbers, one for each feature")
        slack = 1e-9 * self.sizes
        if (np.abs(self.sums) > self.sizes + slack).any():
            raise InvalidInput("sizes: smaller than the sums")
        if (self.raises + self.lowers > n).any():
            raise InvalidInput("raises, lowers: more than there are rows")
        if self.n_new > n:
            raise InvalidInput("n_new: more than there are rows")

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features."""
        return self.header.n_rows, len(self.header.features)

    @property
    def quantity(self) -> Quantity | None:
        """The explained quantity."""
        return self.header.quantity

    @property
    def sampling_excess(self) -> float:
        """The relative error of the target; NaN if unknown."""
        return self.target.relative

    @property
    def units_in_words(self) -> str:
        """The units of attributions in words, with the explained quantity."""
        header = self.header
        return units_in_words(header.units, header.quantity, header.parameters)

    def summary(self) -> pd.DataFrame:
        """The mean size and direction of each feature over all rows, largest first.

        Returns
        -------
        DataFrame
            As :meth:`propopt.results.Explanation.top`: for each feature ``mean`` and
            ``mean_size``, of w and |w|, and ``raises`` and ``lowers``, the shares of
            rows with w > 0 and w < 0. Also ``rms``, the root mean square of w.
        """
        n = self.header.n_rows
        table = pd.DataFrame(
            {
                "mean": self.sums / n,
                "mean_size": self.sizes / n,
                "raises": self.raises / n,
                "lowers": self.lowers / n,
                "rms": np.sqrt(self.squares / n),
            },
            index=pd.Index(self.header.features, name="feature"),
        )
        order = largest_first(table["mean_size"].to_numpy())
        return table.iloc[order]

    def top(self, k: int = 10) -> pd.DataFrame:
        """The k features with the largest mean |w| over all rows.

        The numbers are those of :meth:`propopt.results.Explanation.top`.
        """
        return self.summary().drop(columns="rms")[: read_count(k, "k")]

    def rows(self, rows: Sequence[int] | None = None) -> Explanation:
        """Read some rows as an explanation in memory.

        It has ``clear()``, ``reasons()``, ``to_frame()`` and plots of these rows, with
        the numbers of :meth:`propopt.Explainer.explain`. Values of the columns are not
        in the folder. ``certain()`` and bounds need the objective: explain these rows
        in memory for them.

        Parameters
        ----------
        rows : sequence of int, optional
            Positions in the table, which name the rows of the result. By default all
            rows, or a sample of 2,000 if there are more than 100,000.

        Returns
        -------
        Explanation
            The rows in this order. Its ``target`` has the error of all rows.

        Raises
        ------
        InvalidInput
            If there is no such row, or a part cannot be read.
        """
        header = self.header
        n = self.header.n_rows
        if rows is None:
            rows = range(n) if n <= MOST_LISTED else RowSample.of(n).rows.tolist()
        positions = np.array(rows, np.int64)
        if not len(positions) or positions.min() < 0 or positions.max() >= n:
            raise InvalidInput(f"rows: expected positions from 0 to {n - 1:,}")
        columns = [*header.features, *header.numbers, *header.cells]
        part_of = positions // header.part_rows
        read = [
            self._part(part, columns).loc[np.unique(positions[part_of == part])]
            for part in np.unique(part_of).tolist()
        ]
        table = pd.concat(read).loc[positions]
        before, errors = (np.stack([*table[name]]) for name in header.cells)
        *ends, gap, error = (table[name].to_numpy() for name in header.numbers)
        targets: dict[str, Any] = dict(
            zip(("base_value", "prediction"), ends, strict=False)
        )
        targets["contributions" if ends else "gradient"] = before
        return Explanation(
            attributions=table[[*header.features]].to_numpy(),
            method="optimized",
            units=header.units,
            quantity=header.quantity,
            background=header.background,
            together=header.together,
            parameters=header.parameters,
            labels=Labels(tuple(positions.tolist()), header.features),
            target=self.target,
            standard_errors=errors if self.target.n_blocks else None,
            row_size=header.row_size,
            details={"gap": gap, "error": error},
            **targets,
        )

    def clear(
        self,
        small_change: float | None = None,
        *,
        order: OrderBy = "size",
        groups: Mapping[str, Sequence[str]] | None = None,
        rows: Sequence[int] | None = None,
    ) -> Clear:
        """Find signs and ranks of rows that no small change flips.

        As :meth:`propopt.results.Explanation.clear`, for the rows of :meth:`rows`.
        """
        return self.rows(rows).clear(small_change, order=order, groups=groups)

    def reasons(
        self,
        k: int = N_REASONS,
        towards: Towards = "higher",
        groups: Mapping[str, Sequence[str]] | None = None,
        *,
        least_share: float = LEAST_SHARE,
        small_change: float | None = None,
        rows: Sequence[int] | None = None,
    ) -> Reasons:
        """List the k largest contributions of rows towards a decision.

        As :meth:`propopt.results.Explanation.reasons`, for the rows of :meth:`rows`.
        """
        n = self.header.n_rows
        return Reasons.of(
            self.rows(rows),
            k=k,
            towards=towards,
            groups=groups,
            least_share=least_share,
            small_change=small_change,
            drawn_from=n if rows is None and n > MOST_LISTED else None,
        )

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Read the rows, one part after the other.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read: attributions, base_value, prediction, gap and error,
            and those that were copied from the table; by default all.

        Yields
        ------
        DataFrame
            Some rows; the index has their positions in the explained table.

        Raises
        ------
        InvalidInput
            If the folder, a part or a column is not there, or a part is damaged.
        """
        columns = self.header.columns if columns is None else columns
        for name in columns:
            if name not in self.header.columns:
                raise InvalidInput(f"columns: there is no column {name!r}")
        for part in range(self.header.n_parts):
            yield self._part(part, columns)

    def _part(self, part: int, columns: Sequence[str]) -> pd.DataFrame:
        """Some columns of a part."""
        content = read_part(Path(self.folder), self.header, part)
        if content is None:
            raise InvalidInput(
                f"{path_of_part(Path(self.folder), part)}: it cannot be read: it is "
                f"missing or damaged; {_REMADE}"
            )
        pyarrow = require("pyarrow")
        file = require("pyarrow.parquet").ParquetFile(pyarrow.BufferReader(content))
        rows = self.header.rows_of(part)
        frame = file.read(columns=columns).to_pandas(ignore_metadata=True)
        return frame.set_axis(pd.RangeIndex(rows.start, rows.stop), axis=0)

    def to_frame(self) -> pd.DataFrame:
        """All attributions (N, D), read from the folder; they have to fit in memory."""
        return pd.concat([*self.parts(self.header.features)])

    @property
    def attributions(self) -> Attributions:
        """All attributions as an array (N, D), read from the folder."""
        return self.to_frame().to_numpy()

    def document(self) -> Document:
        """Summarise the features of all rows, by their mean sizes."""
        header = self.header
        quantity = header.quantity
        unit = unit_text(header.units, quantity, header.parameters)
        shape = f"{shape_text(*self.shape)}, in a folder"
        n = header.n_rows
        sizes = self.sizes / n
        order = positions_by_size(sizes)
        columns = size_columns(sizes, order)
        if header.units != "output":
            columns["sign"] = [
                *map(sign_text, (self.raises / n)[order], (self.lowers / n)[order])
            ]
        # means of the negative and of the positive attributions
        ends = (self.sums / n + np.stack([-sizes, sizes])).T[order] / 2.0
        bars = [Span(min(low, 0.0), max(high, 0.0)) for low, high in ends.tolist()]
        facts = [
            *base_facts(self.base_value, header.parameters),
            largest_gap_fact(self.gap),
            sampling_fact(self.target),
            *mixtures_facts(header.parameters),
        ]
        return Document(
            title=title_of("Explanation", quantity),
            subtitle=subtitle_of(quantity, shape, unit),
            dangers=[*self._dangers()],
            blocks=[
                feature_table(header.features, order, columns, {"mean size": bars}),
                Facts(facts),
            ],
            settings={
                "folder": self.folder,
                "files": f"{header.n_parts:,}",
                **{k: in_short(x) for k, x in header.parameters.items()},
            },
            chapters=self._chapters,
        )

    def _dangers(self) -> Iterator[str]:
        """The categories that do not occur in data."""
        if self.n_new:
            noun = "row has" if self.n_new == 1 else "rows have"
            yield (
                f"{self.n_new:,} {noun} categories that do not occur in data: "
                f"{'; '.join(self.new[:_NAMED])}."
            )
            yield "Check them: they are explained as the model treats them."

    def _chapters(self) -> Sequence[Chapter]:
        """The summary of all features as a table."""
        return [table_chapter("All features", self.summary(), "Means over all rows.")]


_SUMS: Final = ("sums", "sizes", "squares", "raises", "lowers")
_REMADE: Final = "explain(X, to=...) with the same explainer and table makes it again"
_NAMED: Final = 3


def write_manifest(folder: Path, header: TableHeader) -> None:
    """Write the manifest of a folder."""
    with atomic_write(folder / MANIFEST) as draft:
        draft.write_text(header.text, encoding="ascii")


def write_part(
    folder: Path,
    header: TableHeader,
    part: int,
    columns: Mapping[str, Any],
    sums: PartSums,
) -> None:
    """Write a part with its sums; the file is whole or absent."""
    pyarrow = require("pyarrow")
    parquet = require("pyarrow.parquet")
    table = pyarrow.table(dict(columns)).replace_schema_metadata(
        sums.metadata(header, part)
    )
    with atomic_write(path_of_part(folder, part)) as draft:
        # attributions hardly repeat, so dictionaries would only cost time
        parquet.write_table(table, draft, use_dictionary=[*header.copied])
        draft.write_bytes(_sealed(draft.read_bytes()))


def read_part(folder: Path, header: TableHeader, part: int) -> bytes | None:
    """The bytes of a finished part; None if it is missing, damaged or another part."""
    try:
        content = path_of_part(folder, part).read_bytes()
    except OSError:
        return None
    is_whole = _sealed(content) == content
    return content if is_whole and PartSums.read(folder, header, part) else None


def _sealed(content: bytes) -> bytes:
    """The bytes of a part with their right digest."""
    before, seal, rest = content.rpartition(_SEAL)
    after = rest[len(_UNSEALED) :]
    digest = _sha256(b"".join([before, seal, _UNSEALED, after]))
    return b"".join([before, seal, digest, after])


def _sha256(content: bytes) -> bytes:
    """The SHA-256 as text."""
    return hashlib.sha256(content).hexdigest().encode()

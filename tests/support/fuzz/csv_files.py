"""CSV files with something wrong: made by a generator of random numbers."""

import contextlib
import gzip
import random
from collections.abc import Callable


def _table(n_rows: int = 24) -> list[list[str]]:
    """Numbers, a category, two columns that encode a colour, and two targets."""
    rng = random.Random(5)
    rows = [["age", "size", "city", "red", "blue", "y", "label"]]
    for _ in range(n_rows):
        age, size, red = rng.gauss(40, 9), rng.gauss(0, 1), rng.randrange(2)
        city = rng.choice(["Bonn it is", "Oslo by a sea"])
        label = rng.choice(["no", "yes"])
        numbers = [f"{age:.4f}", f"{size:.4f}"]
        target = f"{2 * age - size + red:.4f}"
        rows.append([*numbers, city, str(red), str(1 - red), target, label])
    return rows


def _text(rows: list[list[str]]) -> bytes:
    return "".join(",".join(row) + "\n" for row in rows).encode()


TABLE = _text(_table())
CELLS = [
    "", " ", "x", "nan", "inf", "1e999", "1e308", "-1e308", "1e-320", "True", "1" * 400,
    "0x1f", "1_000", "1+2j", '"', '"a,b"', '"a\nb"', "\0", "é", "💥",
    "2024-01-01",    "x" * 200_000, "=1+1", "'", "\t", "\r", "None", "0", "-0", "1,2",
]  # fmt: skip
NAMES = [
    "table.csv.gz", "table.csv.zip", "table.csv.bz2", "table.csv.xz", "table.csv.zst",
    "table.tar", "table.tar.gz", "table", "table.CSV", "tåble.csv", "none/table.csv",
    "a" * 300 + ".csv", "x/" * 2500 + "t.csv", "with space.csv", "table.csv/",
]  # fmt: skip


def odd_table(rng: random.Random) -> tuple[str, bytes]:
    """A name and a content."""
    rows = _table(rng.choice([0, 1, 2, 3, 9, 24, 24, 24]))
    for _ in range(rng.choice([0, 1, 1, 2])):
        with contextlib.suppress(IndexError, ValueError):  # nothing there to change
            rng.choice(IN_ROWS)(rng, rows)
    content = "".join(",".join(row) + "\n" for row in rows)
    text = content.encode()
    if rng.random() < 0.3:
        text = rng.choice(IN_BYTES)(rng, text)
    if rng.random() < 0.6:
        return "table.csv", text
    name = rng.choice(NAMES)
    return name, gzip.compress(text) if name.endswith("gz") else text


# ---- rows
Rows = list[list[str]]


def _cell(rng: random.Random, rows: Rows) -> None:
    row = rng.choice(rows)
    row[rng.randrange(len(row))] = rng.choice(CELLS)


def _column(rng: random.Random, rows: Rows) -> None:
    place, cell = rng.randrange(len(rows[0])), rng.choice(CELLS)
    for row in rows[1:]:
        row[place] = cell


def _more_cells(rng: random.Random, rows: Rows) -> None:
    for row in rows[1:] if rng.random() < 0.5 else rows[-1:]:
        row.append("7")


def _fewer_cells(rng: random.Random, rows: Rows) -> None:
    rng.choice(rows).pop()


def _header(rng: random.Random, rows: Rows) -> None:
    names = ["", " ", "y.1", "Unnamed: 0", "a.b", "x" * 3000, "é", '"q"', "\x1b[31m"]
    rows[0][rng.randrange(len(rows[0]))] = rng.choice([*names, *rows[0]])


def _blank_lines(rng: random.Random, rows: Rows) -> None:
    rows.insert(rng.randint(0, len(rows)), [rng.choice(["", "  "])])


def _wide(rng: random.Random, rows: Rows) -> None:
    for number, row in enumerate(rows):
        row += [
            f"c{k}" if number == 0 else str(k) for k in range(rng.choice([9, 1500]))
        ]


def _no_columns(_: random.Random, rows: Rows) -> None:
    for row in rows:
        row[:] = row[-2:-1]


IN_ROWS: list[Callable[[random.Random, Rows], None]] = [
    _cell, _cell, _column, _more_cells, _fewer_cells, _header,
    _blank_lines, _wide, _no_columns,
]  # fmt: skip


# ---- bytes
def bytes_changed(rng: random.Random, text: bytes) -> bytes:
    changed = bytearray(text)
    for _ in range(rng.randint(1, 9) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.choice(
            [rng.randrange(256), *b"019az-: "]
        )
    return bytes(changed)


def cut(rng: random.Random, text: bytes) -> bytes:
    return text[: rng.randint(0, len(text))]


def _encoded(rng: random.Random, text: bytes) -> bytes:
    encodings = ("utf-16", "utf-32", "utf-8-sig", "utf-16-le", "latin-1")
    return (text.decode() + "é").encode(rng.choice(encodings), "replace")


def _line_ends(rng: random.Random, text: bytes) -> bytes:
    return text.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"\n\r"]))


def _other_commas(rng: random.Random, text: bytes) -> bytes:
    return text.replace(b",", rng.choice([b";", b"\t", b", ", b" "]))


IN_BYTES: list[Callable[[random.Random, bytes], bytes]] = [
    bytes_changed, cut, _encoded, _line_ends, _other_commas,
]  # fmt: skip

"""Saved explanations with something wrong in them: mutations of a sound archive."""

import contextlib
import copy
import io
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from propopt.base.files import digest_of


Members = dict[str, bytes]

WEIRD = [
    None, True, -1, 0, 10**400, 1.5, float("nan"), float("inf"), "", "text", "\ud800",
    "\x1b[31m\x00", [], [1, "a", None], [[]], {}, {"a": None}, {"": {}},
    {"a": "\udfff"}, {"a": 1e308}, {"a": -1.0},
]  # fmt: skip
HEADER_TEXTS = [
    *("", "null", "[]", "{", '"propopt explanation"'),
    *("[" * 100_000, '{"a":' * 50_000, "9" * 10_000, "\x00"),
    '{"format": "propopt explanation"}',
    '{"format": "propopt explanation", "version": [2]}',
    '{"format": ["propopt explanation"], "version": 3}',
]
ARRAYS = [
    np.float64(1.0),
    np.ones(3),
    np.ones((3, 2, 1)),
    np.ones((0, 2)),
    np.ones((3, 0)),
    np.ones((2, 2)),
    np.ones((3, 3)),
    np.full((3, 2), np.nan),
    np.full((3, 2), np.inf),
    np.full((3, 2), 1e308),
    np.full((3, 2), 5e-324),
    np.ones((3, 2), dtype=complex),
    np.ones((3, 2), dtype=bool),
    np.ones((3, 2), dtype=np.float16),
    np.ones((3, 2), dtype=">f8"),
    np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    np.full((3, 2), "text"),
    np.full((3, 2), b"text"),
    np.zeros((3, 2), dtype="M8[s]"),
    np.zeros((3, 2), dtype="V8"),
    np.zeros(3, dtype=[("a", "f8"), ("b", "f8")]),
    np.array([[{}, []], [1, 2], [None, "a"]], dtype=object),
]
DESCRIPTIONS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 2), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }" % ("1, " * 100),
    "{'descr': '<f99999999999', 'fortran_order': False, 'shape': (3, 2), }",
    "{'descr': '<f3', 'fortran_order': False, 'shape': (3, 2), }",
    "{'descr': '<U0', 'fortran_order': False, 'shape': (3, 2), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3, 2), }",
    "{'descr': '<f8', 'fortran_order': 1, 'shape': 6, }",
    "(" * 300,
    "__import__('os').abort()",
    "",
]


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, members: Members, compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def npy(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def described(text: str, data: bytes, version: bytes = b"\x01\x00") -> bytes:
    raw = text.encode()
    return b"\x93NUMPY" + version + struct.pack("<H", len(raw)) + raw + data


def header_of(members: Members) -> dict[str, object]:
    return json.loads(str(np.load(io.BytesIO(members["header.npy"]))))


def with_header(members: Members, header: object) -> Members:
    return {**members, "header.npy": npy(json.dumps(header))}


def pick(rng: np.random.Generator, items: list) -> object:
    return items[int(rng.integers(len(items)))]


def header_changed(rng: np.random.Generator, members: Members) -> Members:
    """A key less or more, another text, or another code point."""
    header = header_of(members)
    gone = pick(rng, sorted(header))
    data = bytearray(members["header.npy"])
    position = 128 + 4 * int(rng.integers((len(data) - 128) // 4))
    data[position : position + 4] = struct.pack("<I", int(rng.integers(2**32)))
    texts = [
        npy(json.dumps({k: v for k, v in header.items() if k != gone})),
        npy(json.dumps({**header, "more": pick(rng, WEIRD)})),
        npy(pick(rng, HEADER_TEXTS)),
        bytes(data),
    ]
    return {**members, "header.npy": pick(rng, texts)}


def member_changed(rng: np.random.Generator, members: Members) -> Members:
    """Another array or description, a cut, noise, or another byte."""
    name = pick(rng, sorted(members))
    data = members[name]
    version = bytes(rng.integers(0, 5, size=2, dtype=np.uint8))
    version = b"\x01\x00" if rng.random() < 0.7 else version
    place = int(rng.integers(min(len(data), 140)))
    contents = [
        npy(pick(rng, ARRAYS)),
        described(pick(rng, DESCRIPTIONS), bytes(48), version),
        data[: int(rng.integers(len(data)))],
        rng.bytes(int(rng.integers(300))),
        data[:place] + rng.bytes(1) + data[place + 1 :],
    ]
    return {**members, name: pick(rng, contents)}


def members_changed(rng: np.random.Generator, members: Members) -> Members:
    """One less, or one more."""
    gone = pick(rng, sorted(members))
    less = {name: data for name, data in members.items() if name != gone}
    name = pick(rng, ["more.npy", "notes.txt", "details.npy", "details.\u2028.npy"])
    more = {**members, name: pick(rng, [npy(np.ones(3)), b"hello", b""])}
    return pick(rng, [less, more])


def places(value: Any) -> Iterator[tuple[object, ...]]:
    """The way to each value of a header, however deep; of a list the first three."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, inner in items:
        yield (key,)
        if isinstance(inner, dict | list):
            yield from ((key, *rest) for rest in places(inner))


def changed(header: Any, position: tuple[object, ...], value: object) -> Any:
    forged = copy.deepcopy(header)
    inner = forged
    for key in position[:-1]:
        inner = inner[key]
    inner[position[-1]] = value
    return forged


def forgeries_of(ours: np.ndarray) -> Iterator[np.ndarray]:
    """Its own numbers: one of them odd, cut, repeated, of another type."""
    ours = np.atleast_1d(ours)
    for odd in (np.nan, np.inf, -np.inf, -1.0, 0.0, 2.0, 1e9, 1e308):
        if ours.dtype.kind == "f" or abs(odd) < 100:
            forged = ours.copy()
            forged.flat[:1] = odd
            yield forged
    yield from (
        ours[:-1],
        ours[::-1],
        ours.ravel(),
        ours[None],
        np.concatenate([ours, ours]),
    )
    kinds = (np.float32, np.int64, bool) if ours.dtype.kind in "fiub" else ()
    yield from (ours.astype(kind) for kind in (*kinds, "U8"))


def array_warped(rng: np.random.Generator, members: Members) -> Members:
    """Its own numbers: cut, repeated, in another dtype, as text, one of them odd."""
    if not (names := [name for name in members if name != "header.npy"]):
        return member_changed(rng, members)
    name = pick(rng, names)
    with np.errstate(invalid="ignore"):
        forged = pick(rng, [*forgeries_of(np.load(io.BytesIO(members[name])))])
    return {**members, name: npy(forged)}


def anything_replaced(rng: np.random.Generator, members: Members) -> Members:
    """A value of the header, however deep it stands."""
    header = header_of(members)
    position = pick(rng, [*places(header)])
    return with_header(members, changed(header, position, pick(rng, WEIRD)))


MUTATIONS = [
    *[array_warped] * 2, *[anything_replaced] * 6, *[header_changed] * 4,
    *[member_changed] * 6, *[members_changed] * 2,
]  # fmt: skip


def file_changed(rng: np.random.Generator, data: bytes) -> bytes:
    """Other bytes, of the list of members at the end too; a cut; a splice."""
    changed = bytearray(data)
    start = pick(rng, [0, *[data.index(b"PK\x01\x02")] * 2])  # sizes, flags, offsets
    for position in rng.integers(start, len(data), size=int(rng.integers(1, 4))):
        changed[int(position)] = int(rng.integers(256))
    first, second = np.sort(rng.integers(len(data), size=2))
    spliced = data[:first] + rng.bytes(int(rng.integers(20))) + data[second:]
    return pick(rng, [*[bytes(changed)] * 3, data[:first], spliced])


def craft(rng: np.random.Generator, sound: Path, target: Path) -> str:
    """Write a mutation of the archive ``sound`` and tell its name."""
    if rng.random() < 0.7:
        mutate = pick(rng, MUTATIONS)
        mutated = mutate(rng, members_of(sound))
        with contextlib.suppress(Exception):  # what makes no sense has no digest
            mutated = signed(mutated) if rng.random() < 0.8 else mutated
        write(target, mutated)
    else:
        mutate = file_changed
        target.write_bytes(mutate(rng, sound.read_bytes()))
    return mutate.__name__


def write_signed(path: Path, members: Members) -> None:
    write(path, signed(members))


def signed(members: Members) -> Members:
    """The members with their digest computed again: what a liar writes."""
    header = header_of(members)
    arrays = {
        name.removesuffix(".npy"): np.load(io.BytesIO(data))
        for name, data in members.items()
        if name != "header.npy"
    }
    told = {k: v for k, v in header.items() if k != "digest"}
    digest = digest_of(json.dumps(told), arrays)
    return with_header(members, {**told, "digest": digest})

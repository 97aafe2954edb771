"""Objects that are their fields: what goes in comes out of a file, and nothing else."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import io
import math
import pickle
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
import pytest
from crafted_archives import (
    ARRAYS,
    WEIRD,
    header_of,
    members_of,
    npy,
    signed,
    with_header,
    write,
)
from exact_values import same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as arrays_of
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.declared import Declared, Lazy, left, stored
from propopt.base.errors import InvalidInput


class Part(Declared):
    share: float = stored(low=0.0, high=1.0)
    numbers: Array = stored("K", missing=True)


@dataclasses.dataclass(frozen=True)
class Plain:
    kind: Literal["about", "at most"]
    price: float = stored(default=0.0, infinite=True, missing=True)


class Whole(Declared, kind="propopt test", noun="a saved test", version=2):
    W: Array = stored("N D")
    errors: Array | None = stored("N D", low=0.0, infinite=True, default=None)
    orders: Array = stored("N D-1")
    signs: NDArray[np.int8] = stored("N D", low=-1, high=1)
    truths: NDArray[np.bool_] | None = stored("N", default=None)
    names: tuple[str, ...] = stored(nonempty=True)
    setting: float | str | bool | None = stored(default=None)
    count: int = stored(low=1)
    weights: Mapping[str, float] = stored(factory=dict, low=0.0)
    details: Mapping[str, NDArray[Any]] = stored(factory=dict)
    ragged: tuple[Array, ...] = stored(default=())
    parts: tuple[Part, ...] = stored(default=())
    plain: Plain | None = stored(default=None)
    later: Array | None = stored("N", lazy=True, default=None)
    model: Any = left(default=None)

    def contradictions(self) -> None:
        if len(self.names) > len(self.W):
            raise InvalidInput("names: more than rows")

    @classmethod
    def upgraded(cls, version, header, arrays):
        assert version == 1
        return {"count": 1, **header}, arrays


def whole(**changes: Any) -> Whole:
    W = np.arange(6.0).reshape(3, 2)
    fields = {
        "W": W,
        "errors": np.full((3, 2), np.inf),
        "orders": np.ones((3, 1)),
        "signs": np.sign(W).astype(np.int8),
        "truths": np.array([True, False, True]),
        "names": ("a", "\x1b[31mb"),
        "setting": True,
        "count": 3,
        "weights": {"x": 0.5},
        "details": {"r2": np.ones(2), "n": np.array([1, 2])},
        "ragged": (np.ones(2), np.zeros(0), np.ones(1)),
        "parts": tuple(
            Part(share=0.5, numbers=np.array([np.nan, 1.0])) for _ in range(2)
        ),
        "plain": Plain("at most", math.inf),
        "later": np.ones(3),
        "model": print,
    }
    return Whole(**{**fields, **changes})


@pytest.fixture
def path(tmp_path):
    whole().save(tmp_path / "whole.npz")
    return tmp_path / "whole.npz"


def test_a_file_gives_back_every_field(path):
    result = Whole.load(path)
    assert same(result, whole())
    assert not result.W.flags.writeable
    assert not result.parts[0].numbers.flags.writeable


class Named(Declared, kind="propopt names", noun="saved names"):
    names: tuple[Hashable, ...] = stored()
    one: Hashable | None = stored(default=None)


def test_names_that_are_no_numbers_are_text_in_a_file(tmp_path):
    names = (("x", 1), "a", 2, np.int64(3), 2.5, True, None)
    Named(names=names).save(tmp_path / "a.npz")
    loaded = Named.load(tmp_path / "a.npz")
    assert same(loaded.names, ("('x', 1)", "a", 2, 3, 2.5, 1, "None"))
    assert loaded.one is None
    with pytest.raises(InvalidInput, match=r"names\.0: expected text or a number"):
        Named(names=("\ud800",)).save(tmp_path / "b.npz")
    with pytest.raises(InvalidInput, match="one: expected text or a number or null"):
        Named(names=(), one=math.nan).save(tmp_path / "b.npz")  # what would be None


@given(
    W=arrays_of(np.float64, (3, 2), elements=st.floats(-1e300, 1e300)),
    weights=st.dictionaries(st.text(st.characters(codec="utf-8")), st.floats(0, 1e308)),
    price=st.floats(),
)
def test_any_numbers_and_names_come_back(tmp_path_factory, W, weights, price):
    made = whole(W=W, weights=weights, plain=Plain("about", price))
    file = tmp_path_factory.mktemp("any") / "a.npz"
    made.save(file)
    assert same(Whole.load(file), made)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: roundtrip(x)])
def test_copies_and_pickles_have_the_fields_and_nobody_writes_to_them(again):
    result = again(whole())
    assert same(result, whole())
    for array in (result.W, result.details["r2"], result.ragged[0]):
        assert not array.flags.writeable
    assert roundtrip(whole()).model is None  # as in files


def roundtrip(made):
    return pickle.loads(pickle.dumps(made))


def test_arrays_are_copied_where_somebody_could_write():
    mine = np.zeros((3, 2))
    made = whole(W=mine)
    mine[:] = 7.0
    assert (made.W == 0.0).all()
    again = dataclasses.replace(made, count=4)
    assert again.W is made.W  # sealed: trusted, and not copied


REFUSED = {
    "W: expected 2 dimensions": {"W": np.ones(3)},
    "W: 6 of 6 values are not finite": {"W": np.full((3, 2), np.nan)},
    "W: expected numbers, got": {"W": "text"},
    "errors: expected numbers >= 0, got -1.0": {"errors": -np.ones((3, 2))},
    r"errors: expected shape \(3, 2\), got \(2, 2\)": {"errors": np.ones((2, 2))},
    r"orders: expected shape \(3, 1\), got \(3, 2\)": {"orders": np.ones((3, 2))},
    "signs: expected numbers from -1 to 1, got 2": {
        "signs": np.full((3, 2), 2, np.int8)
    },
    "signs: expected integers": {"signs": np.full((3, 2), 0.5)},
}


@pytest.mark.parametrize("message", REFUSED)
def test_arrays_that_are_none_are_refused_at_once(message):
    with pytest.raises(InvalidInput, match=message):
        whole(**REFUSED[message])


def test_a_lazy_value_is_computed_once_when_read_and_checked_then():
    calls = []

    def compute():
        calls.append(1)
        return np.ones(3)

    made = whole(later=Lazy(compute))
    assert not calls
    assert made.later is made.later
    assert len(calls) == 1
    assert not made.later.flags.writeable
    with pytest.raises(InvalidInput, match=r"later: expected shape \(3,\), got \(4,\)"):
        _ = whole(later=Lazy(lambda: np.ones(4))).later
    pickled = roundtrip(whole(later=Lazy(compute)))
    assert (vars(pickled)["later"] == 1.0).all()


def test_saving_refuses_what_could_not_be_loaded(tmp_path):
    odd = {
        "count: expected an integer >= 1, got 0": {"count": 0},
        "names: expected a list, each text": {"names": ()},
        "names.*expected text": {"names": ("\ud800",)},
        "weights.x: expected a finite number >= 0": {"weights": {"x": math.inf}},
        "parts.0.share: expected a finite number from 0 to 1": {
            "parts": (Part(share=1.001, numbers=np.ones(1)),)
        },
        "names: more than rows": {"names": tuple("abcd")},
        "setting: expected .*, got": {"setting": [1]},
    }
    for message, change in odd.items():
        with pytest.raises(InvalidInput, match=f"cannot be saved: {message}"):
            whole(**change).save(tmp_path / "odd.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_flipped_byte_is_found_by_the_digest(path, tmp_path):
    data, rng = path.read_bytes(), np.random.default_rng(0)
    crafted = tmp_path / "flipped.npz"
    for place in rng.integers(len(data), size=300):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        crafted.write_bytes(bytes(changed))
        result = loaded(crafted)  # of a date, or what zip files do not read
        assert result is None or same(result, whole())


def test_members_that_are_exchanged_are_found_by_the_digest(path):
    members = members_of(path)
    members["errors.npy"], members["W.npy"] = members["W.npy"], members["errors.npy"]
    write(path, members)
    with pytest.raises(InvalidInput, match="digest"):
        Whole.load(path)


def loaded(path) -> Whole | None:
    """What a file holds, or None where it is refused in one sentence about it."""
    reason = ""
    try:
        return Whole.load(path)
    except InvalidInput as error:
        reason = str(error)
    assert reason.startswith(f"{path}: ")
    assert "\n" not in reason
    return None


def loads_or_refuses(path) -> bool:
    result = loaded(path)
    if result is not None:
        result.save(path.with_name("again.npz"))  # sound: it can be saved again
    return result is not None


def test_forged_headers_load_as_what_they_say_or_not_at_all(path, tmp_path):
    members, crafted = members_of(path), tmp_path / "crafted.npz"
    sound = []
    for key in header_of(members):
        for value in WEIRD:
            forged = with_header(members, {**header_of(members), key: value})
            if key not in ("format", "version", "digest"):
                forged = signed(forged)
            write(crafted, forged)
            if loads_or_refuses(crafted):
                sound.append(key)
    # of what may be anything, a few: numbers of a setting, null for what may be none
    assert set(sound) == {"plain", "setting", "weights"}


def test_forged_arrays_load_as_what_they_say_or_not_at_all(path, tmp_path):
    members, crafted = members_of(path), tmp_path / "crafted.npz"
    for name in [name for name in members if name != "header.npy"]:
        own = np.load(io.BytesIO(members[name]))
        for array in ARRAYS:
            forged = {**members, name: npy(array)}
            write(crafted, forged)
            is_own = npy(own) == npy(np.ascontiguousarray(array))
            assert loads_or_refuses(crafted) == is_own, name  # by the digest
            if np.asarray(array).dtype.kind in "fiubcU":
                write(crafted, signed(forged))
                loads_or_refuses(crafted)


ODD = {
    r"it has no W": lambda m: {k: v for k, v in m.items() if k != "W.npy"},
    r"it also has the array 'more'": lambda m: {**m, "more.npy": npy(np.ones(2))},
    r"W: expected numbers.*got float32": lambda m: {
        **m,
        "W.npy": npy(np.ones((3, 2), np.float32)),
    },
    r"orders: expected shape \(3, 1\)": lambda m: {
        **m,
        "orders.npy": npy(np.ones((3, 3))),
    },
    r"ragged: expected as many numbers": lambda m: {
        **m,
        "ragged.sizes.npy": npy(np.array([2, 0, 2])),
    },
    r"ragged.sizes: expected integers >= 0": lambda m: {
        **m,
        "ragged.sizes.npy": npy(np.array([4, -2, 1])),
    },
    r"names: more than rows": lambda m: with_header(
        m, {**header_of(m), "names": list("abcd")}
    ),
    r"its header has no count": lambda m: with_header(
        m, {k: v for k, v in header_of(m).items() if k != "count"}
    ),
    r"its header has also more": lambda m: with_header(m, {**header_of(m), "more": 1}),
    r"plain: expected the fields of Plain": lambda m: with_header(
        m, {**header_of(m), "plain": [1]}
    ),
    r"plain.kind: expected 'about' or 'at most', got 'x'": lambda m: with_header(
        m, {**header_of(m), "plain": {"kind": "x", "price": 1.0}}
    ),
    r"its header has no parts.1.share": lambda m: with_header(
        m, {**header_of(m), "parts": [{"share": 0.1}, {}]}
    ),
}


@pytest.mark.parametrize("message", ODD)
def test_what_no_such_object_has_is_named(message, path):
    write(path, signed(ODD[message](members_of(path))))
    with pytest.raises(InvalidInput, match=f"whole.npz: not a saved test: .*{message}"):
        Whole.load(path)


def test_an_earlier_version_is_upgraded_and_a_later_one_refused(path):
    members = members_of(path)
    before = header_of(members)
    del before["digest"], before["count"]
    write(path, with_header(members, {**before, "version": 1}))
    assert Whole.load(path).count == 1
    write(path, with_header(members, {**header_of(members), "version": 3}))
    with pytest.raises(InvalidInput, match="version 3; this propopt reads version 2"):
        Whole.load(path)
    stripped = {k: v for k, v in header_of(members).items() if k != "digest"}
    write(path, with_header(members, stripped))
    with pytest.raises(InvalidInput, match="digest"):
        Whole.load(path)


class Names(Declared, kind="propopt rows"):
    names: tuple[Hashable, ...]


def test_names_of_rows_are_numbers_or_text_after_loading(tmp_path):
    names = (np.int64(3), True, math.nan, 1.5, dt.date(2026, 1, 2), 10**400, "a")
    Names(names=names).save(tmp_path / "rows")
    again = Names.load(tmp_path / "rows.npz").names
    large = str(10**400)  # no table has it as a number
    assert same(again, (3, 1, math.nan, 1.5, "2026-01-02", large, "a"))
    assert again.index(math.nan) == 2  # the one that is itself


def test_a_number_is_none_that_no_float_can_be(tmp_path):
    part = Plain("about", 10**400)
    with pytest.raises(InvalidInput, match="price: expected a number"):
        whole(plain=part).save(tmp_path / "large")


def test_what_an_earlier_version_had_not_is_null_by_default(tmp_path):
    Later(count=2).save(tmp_path / "later.npz")
    members = members_of(tmp_path / "later.npz")
    header = {"format": "propopt later", "version": 1, "count": 2}
    write(tmp_path / "later.npz", with_header(members, header))
    assert same(Later.load(tmp_path / "later.npz"), Later(count=2))
    write(tmp_path / "later.npz", with_header(members, {**header, "version": 2}))
    with pytest.raises(InvalidInput, match="digest"):
        Later.load(tmp_path / "later.npz")


class Later(Declared, kind="propopt later", version=2):
    count: int = stored()
    note: str | None = None
    numbers: Array | None = stored("N", default=None)
    price: float = 1.0

    @classmethod
    def upgraded(cls, version, header, arrays):
        header, arrays = super().upgraded(version, header, arrays)
        return {**header, "price": 1.0}, arrays


class Other(Declared, kind="propopt other", noun="a saved other"):
    count: int = stored(low=1)


def test_a_number_beyond_all_floats_is_none(path):
    members = members_of(path)
    for price, may in ((10**400, False), ("inf", True), (1.5, True)):
        plain = {"kind": "about", "price": price}
        header = header_of(members) | {"plain": plain}
        write(path, signed(with_header(members, header)))
        assert (loaded(path) is not None) == may


def test_a_file_of_another_kind_is_refused(tmp_path):
    Other(count=2).save(tmp_path / "other.npz")
    assert Other.load(tmp_path / "other.npz").count == 2
    with pytest.raises(InvalidInput, match="not a saved test: its header is that of"):
        Whole.load(tmp_path / "other.npz")


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    word: str = stored(halves=True)
    at: Array = stored("T", low=0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    place: Place
    errors: Array | None = stored("T", low=0.0, missing=True)


class Rows(Declared, kind="propopt rows", noun="saved rows", version=2):
    rows: tuple[Row, ...] = stored(by_column=True, nonempty=True)

    @classmethod
    def upgraded(cls, version, header, arrays):
        assert version == 1
        return {"rows": {"place": {"word": header["words"]["all"]}}}, arrays


@pytest.fixture
def rows(tmp_path):
    made = Rows(
        rows=tuple(
            Row(Place(word, np.arange(float(n))), errors)
            for n, (word, errors) in enumerate(
                [("\ud800", None), ("b", np.array([np.nan])), ("", np.zeros(2))]
            )
        )
    )
    made.save(tmp_path / "rows.npz")
    return made, tmp_path / "rows.npz"


def test_records_are_saved_field_by_field(rows):
    made, path = rows
    assert same(vars(Rows.load(path)), vars(made))
    assert len(members_of(path)) == 5  # however many rows there are


FORGED_ROWS = {
    "rows.place.at: expected numbers >= 0": {"at": np.array([0.0, -1.0, 1.0])},
    "rows.place.at: 1 of 3 values are not finite": {"at": np.array([0.0, np.nan, 1.0])},
    "rows.place.at.sizes: expected integers >= 0": {"at.sizes": np.array([1, -1, 3])},
    "rows.place.at: expected as many": {"at.sizes": np.array([1, 1, 2])},
    "rows.place: expected as many of each field": {"at.sizes": np.array([1, 2])},
}


@pytest.mark.parametrize("message", FORGED_ROWS)
def test_columns_of_records_are_checked(rows, message):
    _, path = rows
    forged = {f"rows.place.{k}.npy": npy(x) for k, x in FORGED_ROWS[message].items()}
    write(path, signed(members_of(path) | forged))
    with pytest.raises(InvalidInput, match=message):
        Rows.load(path)


@pytest.mark.parametrize("odd", [*WEIRD, {"place": {"word": []}}])
def test_forged_columns_of_records_are_refused(rows, odd):
    _, path = rows
    members = members_of(path)
    write(path, signed(with_header(members, header_of(members) | {"rows": odd})))
    with pytest.raises(InvalidInput, match=r"rows.npz: not saved rows: "):
        Rows.load(path)


def test_two_halves_of_characters_are_not_saved(rows, tmp_path):
    made, _ = rows
    odd = Row(Place("\ud83d\udc4d", np.ones(1)), None)
    with pytest.raises(InvalidInput, match=r"rows.place.word.1: two halves of char"):
        dataclasses.replace(made, rows=(made.rows[0], odd)).save(tmp_path / "odd.npz")


def test_what_no_earlier_version_wrote_is_refused_in_a_sentence(rows):
    _, path = rows
    for words in ([], {}, None):
        header = {"format": "propopt rows", "version": 1, "words": words}
        write(path, with_header({}, header))
        with pytest.raises(
            InvalidInput, match="as a file of version 1: its header lacks"
        ):
            Rows.load(path)

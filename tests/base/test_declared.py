"""Objects that are their fields: what goes in comes out of a file, and nothing else."""

import dataclasses
import datetime as dt
import math
import pickle
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
import pytest
from crafted_archives import header_of, members_of, npy, signed, with_header, write
from exact_values import same
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as arrays_of
from numpy.typing import NDArray
from refusals import refusals

from propopt.base.arrays import Array
from propopt.base.declared import Declared, Lazy, field, transient
from propopt.base.errors import InvalidInput


class Part(Declared):
    share: float = field(low=0.0, high=1.0)
    numbers: Array = field("K", missing=True)


@dataclasses.dataclass(frozen=True)
class Plain:
    kind: Literal["about", "at most"]
    price: float = field(default=0.0, infinite=True, missing=True)


class Whole(Declared, kind="propopt test", noun="a saved test", version=2):
    W: Array = field("N D")
    errors: Array | None = field("N D", low=0.0, infinite=True, default=None)
    orders: Array = field("N D-1")
    signs: NDArray[np.int8] = field("N D", low=-1, high=1)
    truths: NDArray[np.bool_] | None = field("N", default=None)
    names: tuple[str, ...] = field(nonempty=True)
    setting: float | str | bool | None = field(default=None)
    count: int = field(low=1)
    weights: Mapping[str, float] = field(factory=dict, low=0.0)
    details: Mapping[str, NDArray[Any]] = field(factory=dict)
    ragged: tuple[Array, ...] = field(default=())
    parts: tuple[Part, ...] = field(default=())
    plain: Plain | None = field(default=None)
    later: Array | None = field("N", lazy=True, default=None)
    model: Any = transient(default=None)

    def validate(self) -> None:
        if len(self.names) > len(self.W):
            raise InvalidInput("names: more than rows")


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


@settings(max_examples=10)  # each is a file
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


def roundtrip(made):
    return pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize("again", [roundtrip, "file"])
def test_copies_have_the_fields_and_nobody_writes_to_them(again, path):
    result = Whole.load(path) if again == "file" else again(whole())
    assert same(result, whole())
    arrays = (result.W, result.details["r2"], result.ragged[0], result.parts[0].numbers)
    assert not any(array.flags.writeable for array in arrays)
    assert result.model is (None if again == "file" else print)
    given = np.zeros((3, 2))
    made = whole(W=given)
    given[:] = 7.0
    assert (made.W == 0.0).all()
    again = dataclasses.replace(made, count=4)
    assert again.W is made.W  # sealed: trusted, and not copied


@pytest.mark.parametrize(("line", "pattern"), refusals(__file__, "whole"))
def test_arrays_that_are_none_are_refused_at_once(line, pattern):
    with pytest.raises(InvalidInput, match=pattern):
        eval(line)


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


@pytest.mark.parametrize(("fields", "said"), refusals(__file__, "saving"))
def test_saving_refuses_what_could_not_be_loaded(fields, said, tmp_path):
    with pytest.raises(InvalidInput, match=f"cannot be saved: {said}"):
        whole(**eval(fields)).save(tmp_path / "odd.npz")
    assert list(tmp_path.iterdir()) == []


# ---- forged files
def arrays(**items):
    own = {
        f"{name.replace('__', '.')}.npy": npy(array) for name, array in items.items()
    }
    return lambda members: members | own


def header(**items):
    return lambda members: with_header(members, header_of(members) | items)


def without(key):
    def forge(members):
        retained = {k: v for k, v in header_of(members).items() if k != key}
        return with_header(
            {k: v for k, v in members.items() if k != f"{key}.npy"}, retained
        )

    return forge


@pytest.mark.parametrize(("forge", "said"), refusals(__file__, "forged"))
def test_what_no_such_object_has_is_named(forge, said, path):
    write(path, signed(eval(forge)(members_of(path))))
    with pytest.raises(InvalidInput, match=f"whole.npz: not a saved test: .*{said}"):
        Whole.load(path)


@pytest.mark.parametrize("version", [1, 3, 10**400])
def test_another_version_is_refused_with_both_numbers(version, path):
    members = members_of(path)
    write(path, signed(with_header(members, header_of(members) | {"version": version})))
    message = "whole.npz: a saved test of format version .*; this propopt reads version"
    with pytest.raises(InvalidInput, match=message):
        Whole.load(path)


# ---- names, which are text or numbers in a file
class Names(Declared, kind="propopt names", noun="saved names"):
    names: tuple[Hashable, ...] = field()
    one: Hashable | None = field(default=None)


def test_names_of_rows_are_numbers_or_text_after_loading(tmp_path):
    large, path = 10**400, tmp_path / "names.npz"  # no table has it as a number
    given = (np.int64(3), True, math.nan, 1.5, dt.date(2026, 1, 2), large, "a", None)
    Names(names=(*given, ("x", 1))).save(path)
    again = Names.load(path)
    words = ("2026-01-02", str(large), "a", "None", "('x', 1)")
    assert same(again.names, (3, 1, math.nan, 1.5, *words))
    assert again.names.index(math.nan) == 2  # the one that is itself
    assert again.one is None
    with pytest.raises(InvalidInput, match=r"names\.0: expected text or a number"):
        Names(names=("\ud800",)).save(path)
    with pytest.raises(InvalidInput, match="one: expected text or a number or null"):
        Names(names=(), one=math.nan).save(path)  # what would be None


# ---- records, field by field
@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    word: str = field(halves=True)
    at: Array = field("T", low=0.0)


class Rows(Declared, kind="propopt rows", noun="saved rows", version=2):
    rows: tuple[Row, ...] = field(by_column=True, nonempty=True)


@pytest.fixture
def rows(tmp_path):
    words = ("\ud800", "b", "")
    made = Rows(rows=tuple(Row(x, np.arange(float(n))) for n, x in enumerate(words)))
    made.save(tmp_path / "rows.npz")
    return made, tmp_path / "rows.npz"


def test_records_are_saved_field_by_field(rows):
    made, path = rows
    assert same(vars(Rows.load(path)), vars(made))
    assert len(members_of(path)) == 3  # however many rows there are


@pytest.mark.parametrize(("fields", "pattern"), refusals(__file__, "rows"))
def test_columns_of_records_are_checked(rows, fields, pattern):
    _, path = rows
    forged = {f"rows.{k}.npy": npy(x) for k, x in eval(fields).items()}
    write(path, signed(members_of(path) | forged))
    with pytest.raises(InvalidInput, match=pattern):
        Rows.load(path)


def test_forged_columns_of_records_are_refused(rows):
    made, path = rows
    members = members_of(path)
    write(path, signed(with_header(members, header_of(members) | {"rows": {}})))
    with pytest.raises(InvalidInput, match=r"rows.npz: not saved rows: .*rows.word"):
        Rows.load(path)
    odd = Row("\ud83d\udc4d", np.ones(1))
    with pytest.raises(InvalidInput, match=r"rows.word.1: the text has two adj"):
        dataclasses.replace(made, rows=(made.rows[0], odd)).save(path)

"""Archives that are not what save writes: one kind of error, or a sound explanation."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    header_of,
    members_of,
    npy,
    with_header,
    write,
    write_signed,
)

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.frames import Labels


G = np.arange(6.0).reshape(3, 2) / 7
OBJECTIVE = po.GradientMatching(
    pd.DataFrame(G, columns=["age", "dose"], index=["p", "q", "r"])
) + 0.2 * po.PairwiseRobustness(po.chain_graph(3))
BEST = po.solve(OBJECTIVE)
FULL = po.Explanation(
    **{
        **vars(BEST),
        "parameters": {"scale": 0.1, "fit": True, "kernel": None, "name": "a"},
        "multipliers": {"sparsity": 0.25},
        "standard_errors": G / 3,
        "details": {"r2": np.array([0.1, 0.2, 0.3])},
    }
)


@pytest.fixture
def sound(tmp_path):
    FULL.save(tmp_path / "sound.npz")
    return tmp_path / "sound.npz"


def changed(sound, **header):
    told = header_of(members_of(sound)) | header
    write_signed(sound, with_header(members_of(sound), told))


def inner(sound, key, **items):
    known = header_of(members_of(sound))[key]
    changed(sound, **{key: {**known, **items}})


MEMBERS = {
    r"its member 'notes.txt' is no array": {"notes.txt": b"hello"},
    r"make no sense": {"header.npy": npy("[" * 100_000)},
    r"its header is no JSON object": {"header.npy": npy("[]")},
}


@pytest.mark.parametrize("message", MEMBERS)
def test_members_that_no_explanation_has_are_named(message, sound):
    write(sound, {**members_of(sound), **MEMBERS[message]})
    with pytest.raises(InvalidInput, match=f"sound.npz: not a saved explan.*{message}"):
        po.Explanation.load(sound)


def test_compressed_members_are_named(sound):
    write(sound, members_of(sound), zipfile.ZIP_DEFLATED)
    with pytest.raises(InvalidInput, match=r"its member .header\.npy. is compressed"):
        po.Explanation.load(sound)


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (8, struct.pack("<H", 1), "is encrypted"),
        (20, struct.pack("<II", 2**30, 2**30), "claim more bytes than the file has"),
    ],
)
def test_what_the_list_of_members_says_is_checked(offset, value, message, sound):
    data = bytearray(sound.read_bytes())
    start = data.index(b"PK\x01\x02") + offset  # its first entry
    data[start : start + len(value)] = value
    sound.write_bytes(bytes(data))
    with pytest.raises(InvalidInput, match=message):
        po.Explanation.load(sound)


def test_nothing_is_allocated_that_the_file_does_not_hold(sound):
    huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99), }"
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(huge)) + huge.encode()
    write(sound, {**members_of(sound), "attributions.npy": raw})
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="make no sense"):
            po.Explanation.load(sound)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_two_members_of_one_name_are_refused(sound):
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(sound, "a") as archive,
    ):
        archive.writestr("attributions.npy", npy(2 * G))
    with pytest.raises(InvalidInput, match="two of its members have one name"):
        po.Explanation.load(sound)


def test_a_folder_is_no_archive(tmp_path):
    (tmp_path / "best.npz").mkdir()
    with pytest.raises(InvalidInput, match=r"best\.npz: .*directory"):
        po.Explanation.load(tmp_path / "best")


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": {"a": [1, 2]}},
        {"parameters": {"a": object()}},
        {"losses": {"a": float("nan")}},
        {"method": "half a pair \ud800"},
        {"details": {"names": np.array(["a", "b"])}},
        {"certificate": po.Certificate(value=9.0, lower_bound=1, scale=9.0, kind="a")},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_could_not_be_loaded_is_not_saved(fields, tmp_path):
    bad = po.Explanation(**{**vars(FULL), **fields})
    with pytest.raises(InvalidInput, match=r"best\.npz: cannot be saved: "):
        bad.save(tmp_path / "best")
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path):
    parameters = {"n": np.int64(3), "scale": np.float32(0.5), "fit": np.bool_(True)}
    po.Explanation(**{**vars(FULL), "parameters": parameters}).save(tmp_path / "best")
    result = po.Explanation.load(tmp_path / "best")
    assert result.parameters == {"n": 3, "scale": 0.5, "fit": True}


# ---- certified again


def test_with_the_objective_it_is_certified_again(sound):
    result = po.Explanation.load(sound, objective=OBJECTIVE)
    assert result.certificate == po.certify(OBJECTIVE, BEST.attributions)
    assert result.weights == OBJECTIVE.weights
    assert result.losses == BEST.losses
    assert result.gap == pytest.approx(0.0, abs=1e-12)


def test_other_attributions_under_the_old_certificate_are_found_out(sound):
    moved = BEST.attributions + 1e-3
    moved_there = {**members_of(sound), "attributions.npy": npy(moved)}
    write(sound, moved_there)
    with pytest.raises(InvalidInput, match="digest"):
        po.Explanation.load(sound)
    write_signed(sound, moved_there)
    assert po.Explanation.load(sound).gap == BEST.gap  # what the file says
    result = po.Explanation.load(sound, objective=OBJECTIVE)
    value = OBJECTIVE.value(moved)
    assert result.objective == pytest.approx(value, rel=1e-12)
    assert result.gap == pytest.approx(1 - BEST.objective / value, rel=1e-6)


def test_with_the_objective_a_certificate_that_contradicts_does_not_matter(sound):
    inner(sound, "certificate", value=0.0, lower_bound=0.0)
    with pytest.raises(InvalidInput, match="the losses give"):
        po.Explanation.load(sound)
    result = po.Explanation.load(sound, objective=OBJECTIVE)
    assert result.certificate == po.certify(OBJECTIVE, BEST.attributions)


def test_with_bounds_the_stored_multipliers_give_the_bound(tmp_path):
    bound = po.PairwiseRobustness(po.chain_graph(3)) <= 0.05
    matching = po.GradientMatching(G)
    best = po.solve(matching, subject_to=[bound])
    best.save(tmp_path / "best")
    result = po.Explanation.load(
        tmp_path / "best", objective=matching, subject_to=[bound]
    )
    assert result.certificate.holds(1e-6)
    assert result.multipliers == best.multipliers
    assert result.losses == pytest.approx(best.losses, rel=1e-12)


def test_an_objective_of_other_rows_is_refused(sound):
    with pytest.raises(InvalidInput, match="expected W with 4 points"):
        po.Explanation.load(sound, objective=po.GradientMatching(np.ones((4, 2))))
    other = pd.DataFrame(G, columns=["age", "size"], index=["p", "q", "r"])
    with pytest.raises(InvalidInput, match="'size' missing, 'dose' not known"):
        po.Explanation.load(sound, objective=po.GradientMatching(other))


def test_a_loss_of_the_same_name_takes_the_certificate_away():
    other = po.GradientMatching(2 * G)
    assert BEST.measured(OBJECTIVE).certificate == BEST.certificate
    measured = BEST.measured(other)
    assert measured.certificate is None
    assert measured.weights == measured.multipliers == {}
    assert measured.losses["gradient_matching"] == other.value(BEST)


def test_the_largest_numbers_are_shown(tmp_path):
    W = np.full((3, 2), 1.5e308) * [1.0, -1.0]
    result = po.Explanation(attributions=W, method="mine", labels=Labels(None, None))
    assert repr(result)
    result.save(tmp_path / "best")
    again = po.Explanation.load(tmp_path / "best")
    assert again._repr_html_() == result._repr_html_()


@pytest.mark.parametrize("path", ["", ".", "..", "/"])
def test_a_path_that_names_no_file_is_refused(path):
    for use in (FULL.save, po.Explanation.load):
        with pytest.raises(InvalidInput, match=r"^path: expected the name of a file"):
            use(path)


# ---- constraints

ABOVE = r"its lower bound .* is above its value"


def complete(n=6):
    """An optimum of rows that add up, with a violation that is of rounding."""
    rng = np.random.default_rng(4)
    phi = rng.normal(size=(n, 3))
    objective = po.GradientMatching(phi) + po.PairwiseRobustness(po.chain_graph(n))
    total = po.Completeness(phi.sum(axis=1) + rng.normal(size=n))
    return objective, total, po.solve(objective, subject_to=[total])


def test_a_bound_far_above_the_value_is_no_rounding_of_a_constraint(tmp_path):
    _, _, best = complete()
    certificate = best.certificate
    path = tmp_path / "complete.npz"
    for violation in (2.5e-16, 1e-9, 1e-7):
        best.save(path)
        told = {"violation": violation, "lower_bound": 9e9}
        inner(path, "certificate", **told)
        with pytest.raises(InvalidInput, match=ABOVE):
            po.Explanation.load(path)
    best.save(path)
    inner(path, "certificate", violation=2.5e-16, lower_bound=certificate.value * 1.001)
    with pytest.raises(InvalidInput, match=ABOVE):
        po.Explanation.load(path)


def test_a_bound_above_the_value_by_what_the_violation_explains_is_loaded(tmp_path):
    objective, total, best = complete()
    W = best.attributions.copy()
    W[0] += 1e-7  # not complete by 3e-7: the bound may be above what it costs
    near = po.Explanation(
        **{**vars(best), "attributions": W, "losses": {}, "weights": {}}
    ).certified(objective, subject_to=[total])
    assert near.certificate.violation > 1e-8
    near.save(tmp_path / "near.npz")
    assert po.Explanation.load(tmp_path / "near.npz").certificate == near.certificate
    far = po.Explanation(attributions=0.5 * W, method="mine").certified(
        objective, subject_to=[total]
    )
    assert far.certificate.violation > 0.01
    far.save(tmp_path / "far.npz")
    assert po.Explanation.load(tmp_path / "far.npz").certificate == far.certificate


def test_limits_that_are_kept_to_the_tolerance_are_loaded(tmp_path):
    rng = np.random.default_rng(1)
    phi = rng.normal(size=(12, 3))
    robust = po.PairwiseRobustness(po.chain_graph(12))
    for limit in (0.5, 3.0):
        best = po.solve(
            po.GradientMatching(phi) + 0.01 * po.Sparsity(),
            subject_to=[robust <= limit],
        )
        best.save(tmp_path / "bounded.npz")
        same = po.Explanation.load(tmp_path / "bounded.npz")
        assert same.certificate == best.certificate
        told = {"lower_bound": best.certificate.value * 1.01, "violation": 1e-9}
        inner(tmp_path / "bounded.npz", "certificate", **told)
        with pytest.raises(InvalidInput, match=ABOVE):
            po.Explanation.load(tmp_path / "bounded.npz")

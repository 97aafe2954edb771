"""Archives that are not what save writes: one kind of error, or a sound explanation."""

from __future__ import annotations

import struct
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    craft,
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


def show(explanation):
    """Whatever is shown, saved and measured of an explanation."""
    assert repr(explanation)
    assert explanation._repr_html_().encode()
    assert repr(explanation).encode()
    assert explanation.to_frame().shape == explanation.attributions.shape
    assert np.isfinite(explanation.attributions).all()
    gap = explanation.gap
    assert gap is None or gap >= 0.0
    assert explanation.objective is None or explanation.objective >= 0.0


def check(path, mutation):
    try:
        result = po.Explanation.load(path)
    except InvalidInput as error:
        message = str(error)
        assert message.startswith(f"{path}: "), (mutation, message)
        assert "\n" not in message, (mutation, message)
        assert len(message) < 500 + len(str(path)), (mutation, message)
        return False
    show(result)
    return True


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_archive_is_refused_in_one_sentence_or_sound(seed, sound, tmp_path):
    rng = np.random.default_rng(seed)
    path = tmp_path / "crafted.npz"
    outcomes = []
    for _ in range(100):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # zipfile: two of one name
            mutation = craft(rng, sound, path)
        try:
            outcomes.append(check(path, mutation))
        except Exception as error:
            raise AssertionError(mutation) from error
    assert 0 < sum(outcomes) < 100  # both kinds come up


def changed(sound, **header):
    told = header_of(members_of(sound)) | header
    write_signed(sound, with_header(members_of(sound), told))


def inner(sound, key, **items):
    known = header_of(members_of(sound))[key]
    changed(sound, **{key: {**known, **items}})


CONTRADICTIONS = {
    r"certificate: it is of the value .*, and the losses give": lambda p: inner(
        p, "certificate", value=BEST.certificate.value * (1 + 1e-8)
    ),
    r"certificate: it is of the value": lambda p: inner(
        p, "losses", gradient_matching=BEST.losses["gradient_matching"] * 1.001
    ),
    r"certificate: it is of the value .*": lambda p: inner(
        p, "weights", pairwise_robustness=0.21
    ),
    r"certificate: its lower bound .* is above its value": lambda p: inner(
        p, "certificate", lower_bound=BEST.certificate.value * (1 + 1e-8)
    ),
    r"certificate: its scale is below": lambda p: inner(p, "certificate", scale=0.0),
    r"certificate: not all weighted losses": lambda p: changed(
        p, losses={"gradient_matching": 1.0}
    ),
    r"certificate.value: expected a finite number >= 0": lambda p: inner(
        p, "certificate", value=float("nan")
    ),
    r"losses.gradient_matching: expected a finite number": lambda p: inner(
        p, "losses", gradient_matching=float("inf")
    ),
    r"weights.pairwise_robustness: expected a finite number >= 0": lambda p: inner(
        p, "weights", pairwise_robustness=-1.0
    ),
    r"attributions: 6 of 6 values are not finite": lambda p: write_signed(
        p, {**members_of(p), "attributions.npy": npy(np.full((3, 2), np.nan))}
    ),
    r"labels: expected 3 names of points, got 2": lambda p: changed(
        p, shared=[{"points": ["p", "q"], "features": None}]
    ),
    r"units: expected 'gradient'": lambda p: changed(p, units="metres"),
    r"evaluations: expected an integer": lambda p: changed(p, evaluations=True),
    r"its header has no losses": lambda p: write_signed(
        p,
        with_header(
            members_of(p),
            {k: v for k, v in header_of(members_of(p)).items() if k != "losses"},
        ),
    ),
    r"its header has also more": lambda p: changed(p, more=1),
    r"it also has the array 'more'": lambda p: write_signed(
        p, {**members_of(p), "more.npy": npy(np.ones(2))}
    ),
    r"it has no attributions": lambda p: write_signed(
        p, {n: d for n, d in members_of(p).items() if n != "attributions.npy"}
    ),
    r"its member 'notes.txt' is no array": lambda p: write(
        p, {**members_of(p), "notes.txt": b"hello"}
    ),
    r"its member 'header.npy' is compressed": lambda p: write(
        p, members_of(p), zipfile.ZIP_DEFLATED
    ),
    r"make no sense": lambda p: write(
        p, {**members_of(p), "header.npy": npy("[" * 100_000)}
    ),
    r"its header is no JSON object": lambda p: write(
        p, {**members_of(p), "header.npy": npy("[]")}
    ),
}


@pytest.mark.parametrize("write_it", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_no_explanation_has_is_named(write_it, sound, request):
    write_it(sound)
    message = request.node.callspec.id
    with pytest.raises(InvalidInput, match=f"sound.npz: not a saved explan.*{message}"):
        po.Explanation.load(sound)


def test_a_sound_certificate_is_that_of_its_losses(sound):
    result = po.Explanation.load(sound)
    assert result.certificate == FULL.certificate
    show(result)


def flagged(path, offset, value):
    """A field of the first entry of the list of members, as a zip file has it."""
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02") + offset
    data[start : start + len(value)] = value
    path.write_bytes(bytes(data))


def test_encrypted_members_are_refused(sound):
    flagged(sound, 8, struct.pack("<H", 1))
    with pytest.raises(InvalidInput, match="is encrypted"):
        po.Explanation.load(sound)


def test_members_larger_than_the_file_are_refused(sound):
    flagged(sound, 20, struct.pack("<II", 2**30, 2**30))
    with pytest.raises(InvalidInput, match="claim more bytes than the file has"):
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
    show(result)
    result.save(tmp_path / "best")
    show(po.Explanation.load(tmp_path / "best"))


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

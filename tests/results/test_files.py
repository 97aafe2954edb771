"""Files of results: of explanations in detail, and tables as CSV."""

import dataclasses
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
from exact_values import same
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput


G = np.arange(6.0).reshape(3, 2) / 7
OBJECTIVE = po.GradientMatching(
    pd.DataFrame(G, columns=["age", "dose"], index=["p", "q", "r"])
) + 0.2 * po.PairwiseRobustness(po.graphs.chain_graph(3))
BEST = po.solve(OBJECTIVE)
MORE = {
    "parameters": {"scale": 0.1, "fit": True, "kernel": None, "name": "a"},
    "multipliers": {"sparsity": 0.25},
    "standard_errors": G / 3,
    "details": {"r2": np.array([0.1, 0.2, 0.3])},
    "solver": "conic",
    "seconds": 0.1,
}
FULL = dataclasses.replace(BEST, **MORE)
BARE = po.results.Explanation(attributions=G, method="gradient")


@pytest.fixture
def sound(tmp_path):
    FULL.save(tmp_path / "sound.npz")
    return tmp_path / "sound.npz"


def reloaded(explanation, path):
    explanation.save(path)
    return po.results.Explanation.load(path)


def inner(sound, key, **items):
    """A file that was signed again, with other items in a mapping of its header."""
    header = header_of(members_of(sound))
    reported = {**header, key: {**header[key], **items}}
    write_signed(sound, with_header(members_of(sound), reported))


def test_file_names_are_completed_and_paths_without_one_refused(tmp_path):
    for name in ("best", "best.npz", "scale=0.1", "best.v1"):
        BARE.save(tmp_path / name)
        (path,) = tmp_path.iterdir()
        assert path.name == f"{name.removesuffix('.npz')}.npz"
        assert same(po.results.Explanation.load(tmp_path / name), BARE)
        assert po.results.Explanation.load(str(path)).method == "gradient"
        path.unlink()
    with pytest.raises(FileNotFoundError):
        po.results.Explanation.load(tmp_path / "nothing.npz")
    for name in ("", ".", "..", "/"):
        for use in (FULL.save, po.results.Explanation.load):
            with pytest.raises(InvalidInput, match=r"^path: expected the name of a f"):
                use(name)


def of_numpy(path, **arrays):
    np.savez(path, **arrays)


def members(path, items, compression=zipfile.ZIP_STORED):
    write(path, {**members_of(path), **items}, compression)


def listed(path, offset, value):
    """What the list of members at the end says of the first."""
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02") + offset
    data[start : start + len(value)] = value
    path.write_bytes(bytes(data))


def twice(path):
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as archive,
    ):
        archive.writestr("attributions.npy", npy(2 * G))


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "files"))
def test_other_files_are_refused_by_name(line, message, sound):
    eval(line, globals() | {"path": sound})
    with pytest.raises(InvalidInput, match=rf"sound\.npz: .*{message}"):
        po.results.Explanation.load(sound)


def test_nothing_is_allocated_that_the_file_does_not_hold(sound):
    huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99), }"
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(huge)) + huge.encode()
    write(sound, {**members_of(sound), "attributions.npy": raw})
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="make no sense"):
            po.results.Explanation.load(sound)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_with_the_objective_it_is_certified_again(sound):
    result = po.results.Explanation.load(sound, objective=OBJECTIVE)
    assert result.certificate == po.proofs.certify(OBJECTIVE, BEST.attributions)
    assert result.weights == OBJECTIVE.weights
    assert result.losses == BEST.losses
    moved = BEST.attributions + 1e-3
    forged = {**members_of(sound), "attributions.npy": npy(moved)}
    write_signed(sound, forged)
    assert po.results.Explanation.load(sound).gap == BEST.gap  # what the file says
    result = po.results.Explanation.load(sound, objective=OBJECTIVE)
    value = OBJECTIVE.value(moved)
    assert result.objective == pytest.approx(value, rel=1e-12)
    assert result.gap == pytest.approx(1 - BEST.objective / value, rel=1e-6)


def test_with_the_objective_a_certificate_that_contradicts_does_not_matter(sound):
    inner(sound, "certificate", value=0.0, lower_bound=0.0)
    result = po.results.Explanation.load(sound, objective=OBJECTIVE)
    assert result.certificate == po.proofs.certify(OBJECTIVE, BEST.attributions)
    other = pd.DataFrame(G, columns=["age", "size"], index=["p", "q", "r"])
    for objective, message in (
        (None, "the losses give"),
        (po.GradientMatching(np.ones((4, 2))), "expected W with 4 points"),
        (po.GradientMatching(other), "'size' missing, 'dose' unexpected"),
    ):
        with pytest.raises(InvalidInput, match=message):
            po.results.Explanation.load(sound, objective=objective)


def test_with_bounds_the_stored_multipliers_give_the_bound(tmp_path):
    bound = po.PairwiseRobustness(po.graphs.chain_graph(3)) <= 0.05
    matching = po.GradientMatching(G)
    best = po.solve(matching, subject_to=[bound])
    best.save(tmp_path / "best")
    settings = {"objective": matching, "subject_to": [bound]}
    result = po.results.Explanation.load(tmp_path / "best", **settings)
    assert result.certificate.holds(1e-6)
    assert result.multipliers == best.multipliers
    assert result.losses == pytest.approx(best.losses, rel=1e-12)


def complete(n=6):
    """An optimum of rows that add up, with a violation that is of rounding."""
    rng = np.random.default_rng(4)
    phi = rng.normal(size=(n, 3))
    objective = po.GradientMatching(phi) + po.PairwiseRobustness(
        po.graphs.chain_graph(n)
    )
    total = po.losses.Completeness(phi.sum(axis=1) + rng.normal(size=n))
    return objective, total, po.solve(objective, subject_to=[total])


def bounded(limit):
    phi = np.random.default_rng(1).normal(size=(12, 3))
    robust = po.PairwiseRobustness(po.graphs.chain_graph(12))
    sparse = po.GradientMatching(phi) + 0.01 * po.Sparsity()
    return po.solve(sparse, subject_to=[robust <= limit])


def test_a_bound_far_above_the_value_is_no_rounding_of_a_constraint(tmp_path):
    path = tmp_path / "a.npz"
    for best, violation, factor in (
        (complete()[2], 2.5e-16, 9e9),
        (complete()[2], 1e-7, 9e9),
        (complete()[2], 2.5e-16, 1.001),
        (bounded(0.5), 1e-9, 1.01),  # is within the tolerance
        (bounded(3.0), 1e-9, 1.01),
    ):
        assert reloaded(best, path).certificate == best.certificate
        high = {"lower_bound": factor * best.certificate.value, "violation": violation}
        inner(path, "certificate", **high)
        with pytest.raises(InvalidInput, match=r"the lower bound .* is above the val"):
            po.results.Explanation.load(path)


def test_a_bound_above_the_value_by_what_the_violation_explains_is_loaded(tmp_path):
    objective, total, best = complete()
    close = best.attributions.copy()
    close[0] += 1e-7  # not complete by 3e-7: the bound may be above what it costs
    for W, least in ((close, 1e-8), (0.5 * close, 0.01)):
        mine = po.results.Explanation(attributions=W, method="mine")
        mine = mine.certified(objective, subject_to=[total])
        assert mine.certificate.violation > least
        assert reloaded(mine, tmp_path / "a.npz").certificate == mine.certificate


def test_an_archive_that_does_not_fit_into_memory_says_so(sound, monkeypatch):
    def full(*_, **__):
        raise MemoryError("Unable to allocate 9.00 GiB")

    monkeypatch.setattr("propopt.base.files._read", full)
    with pytest.raises(InvalidInput, match=r"sound\.npz: not .* fit into the memory"):
        po.results.Explanation.load(sound)

"""Memory is refused with a figure: of the machine, of the process, of its group."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

import propopt as po
from propopt.base import resources
from propopt.base.errors import InvalidInput, ProblemFileError, Refused
from propopt.losses.graphs import grid


GIB = 2**30


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with one mebibyte of free memory."""
    free = SimpleNamespace(available=2**20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)


@pytest.fixture
def group(monkeypatch, tmp_path):
    """Files of a control group: a function that writes them."""
    monkeypatch.setattr(resources, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(resources, "MEMBERSHIP", tmp_path / "membership")
    machine = SimpleNamespace(available=64 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)

    def write(membership, **files):
        (tmp_path / "membership").write_text(membership)
        for name, text in files.items():
            path = tmp_path / "cgroup" / name.replace("__", "/").replace("-", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


LIMITED = """
import resource, psutil
from propopt.base.resources import require_memory
used = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, resource.RLIM_INFINITY))
require_memory(2**29, "a half", "wait")
require_memory(2**31, "a double", "take a half")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no address limit")
def test_an_address_limit_counts_as_memory_that_is_not_free():
    assert psutil.virtual_memory().available > 2 * GIB
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True
    )
    last = ran.stderr.strip().splitlines()[-1]
    assert "a double needs about 2.0 GiB and 1.0 GiB are free; take a half" in last


def test_without_limits_the_memory_of_the_machine_is_free(group):
    group("0::/\n")
    assert resources.free_memory() == 64 * GIB
    resources.MEMBERSHIP.unlink()
    assert resources.free_memory() == 64 * GIB


def test_a_control_group_of_version_2_leaves_what_it_has_not_used(group):
    files = {"memory-max": f"{4 * GIB}\n", "memory-current": f"{3 * GIB}\n"}
    group("0::/a/b\n", **{f"a__{name}": text for name, text in files.items()})
    assert resources.free_memory() == GIB


def test_cached_files_of_a_group_are_free(group):
    group(
        "0::/\n",
        **{
            "memory-max": f"{4 * GIB}",
            "memory-current": f"{3 * GIB}",
            "memory-stat": f"anon {GIB}\ninactive_file {2 * GIB}\n",
        },
    )
    assert resources.free_memory() == 3 * GIB


def test_the_least_generous_of_the_groups_around_binds(group):
    group(
        "0::/a/b\n",
        **{
            "memory-max": f"{2 * GIB}",
            "memory-current": f"{GIB}",
            "a__memory-max": "max",
            "a__memory-current": f"{GIB}",
            "a__b__memory-max": f"{8 * GIB}",
            "a__b__memory-current": "0",
        },
    )
    assert resources.free_memory() == GIB


def test_a_control_group_of_version_1_is_read_where_its_path_is_not_mounted(group):
    group(
        "9:cpu:/x\n4:cpuset,memory:/docker/abc\n0::/x\n",
        **{
            "memory__memory-limit_in_bytes": f"{4 * GIB}",
            "memory__memory-usage_in_bytes": f"{3 * GIB}",
            "memory__memory-stat": f"inactive_file 0\ntotal_inactive_file {GIB}\n",
        },
    )
    assert resources.free_memory() == 2 * GIB


def test_a_process_above_its_limit_has_nothing_left(group):
    group("0::/\n", **{"memory-max": "1000", "memory-current": "2000"})
    assert resources.free_memory() == 0.0


MAKERS = {
    "correlation": (lambda: po.correlation_graph(np.eye(3, 300)), 40 * 300**2),
    "pixel": (lambda: po.pixel_graph(100, 100), 176 * 100**2),
    "chain": (lambda: po.chain_graph(30_000), 80 * 30_000),
    "group": (lambda: po.group_graph(np.zeros(300)), 40 * 300**2),
    "lattice": (lambda: po.graphs.LatticeGraph((100, 100)).similarities, 176 * 100**2),
    "grid": (lambda: grid(0, 1, 300, 2), 8 * (7 * 300**2 + 300)),
}


@pytest.mark.parametrize(("make", "n_bytes"), MAKERS.values(), ids=MAKERS)
@pytest.mark.usefixtures("small_machine")
def test_large_graphs_and_grids_are_refused_with_the_figure(make, n_bytes):
    figure = f"needs about {n_bytes / 2**20:.1f} MiB and 1.0 MiB are free"
    with pytest.raises(Refused, match=figure):
        make()


@pytest.mark.parametrize(("make", "n_bytes"), MAKERS.values(), ids=MAKERS)
def test_the_figure_is_no_less_than_what_is_taken(make, n_bytes):
    make()  # what is imported and cached is not counted
    tracemalloc.start()
    try:
        made = make()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made is not None
    assert 0.3 * n_bytes < peak < 1.1 * n_bytes


@pytest.mark.parametrize("dimensions", [63, 10**9])
def test_a_grid_of_too_many_points_is_refused_before_they_are_counted(dimensions):
    with pytest.raises(InvalidInput, match=f"2\\^{dimensions} points are too many"):
        grid(0, 1, 2, dimensions)


PROBLEM = """
data: {sklearn: iris, explain: 5}
model: {kind: mlp, hidden: [1000, 1000]}
objective: {gradient_matching: 1}
"""


@pytest.mark.usefixtures("small_machine")
def test_wide_hidden_layers_are_refused_with_the_figure(tmp_path):
    file = tmp_path / "wide.yaml"
    file.write_text(PROBLEM)
    problem = po.problems.read_problem(file).build()
    message = (
        r"wide\.yaml:3: .*a network of this size needs about \d{3}\.\d MiB and 1\."
    )
    with pytest.raises(ProblemFileError, match=message):
        po.problems.run_problem(problem, tmp_path)

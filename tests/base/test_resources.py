"""Memory, batches, threads and extras: refused with a figure, kept to, told by name."""

import importlib
import re
import subprocess
import sys
import tomllib
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import ThreadpoolController

import propopt as po
from propopt.base import resources
from propopt.base.errors import MissingExtra, Refused
from propopt.base.extras import EXTRAS, require
from propopt.base.resources import (
    MODEL_CALLS,
    ONE_THREAD,
    SERIAL_BELOW,
    Budget,
    for_each_column,
    row_blocks,
)
from propopt.lime import sampled_limits
from propopt.lime.diagnosis import evidence
from propopt.losses.graphs import features, grid


GIB = 2**30


@pytest.fixture
def group(monkeypatch, tmp_path):
    """Files of a control group: a function that writes them."""
    monkeypatch.setattr(resources, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(resources, "MEMBERSHIP", tmp_path / "membership")
    machine = SimpleNamespace(available=64 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)

    def write(membership, files):
        (tmp_path / "membership").write_text(membership)
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(text))

    return write


LIMITED = """
import resource, psutil
from propopt.base.resources import require_memory
used = psutil.Process().memory_info().vms
left = 2**30 + 2**24  # 16 MiB over, for what the check itself takes
resource.setrlimit(resource.RLIMIT_AS, (used + left, resource.RLIM_INFINITY))
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


def version_2(limit, current, folder=""):
    return {f"{folder}memory.max": limit, f"{folder}memory.current": current}


TWO_OF_FOUR = version_2(4 * GIB, 3 * GIB)
CACHED = {"memory.stat": f"anon {GIB}\ninactive_file {2 * GIB}\n"}
NOT_MOUNTED = "9:cpu:/x\n0::/docker/abc\n"
LEAST = version_2(2 * GIB, GIB) | version_2("max", GIB, "a/")
GROUPS = {
    "none": ("0::/\n", {}, 64 * GIB),
    "version 2": ("0::/a/b\n", version_2(4 * GIB, 3 * GIB, "a/"), GIB),
    "cached files": ("0::/\n", TWO_OF_FOUR | CACHED, 3 * GIB),
    "the least": ("0::/a/b\n", LEAST | version_2(8 * GIB, 0, "a/b/"), GIB),
    "at a path that is not mounted": (NOT_MOUNTED, TWO_OF_FOUR, GIB),
    "above its limit": ("0::/\n", version_2(1000, 2000), 0.0),
}


@pytest.mark.parametrize("name", GROUPS)
def test_what_control_groups_leave_is_free(group, name):
    membership, files, free = GROUPS[name]
    group(membership, files)
    assert resources.free_memory() == free
    if not files:
        resources.MEMBERSHIP.unlink()
        assert resources.free_memory() == 64 * GIB


MAKERS = {
    "correlation": (lambda: po.graphs.correlation_graph(np.eye(3, 300)), 40 * 300**2),
    "gaussian": (lambda: po.graphs.gaussian_graph(np.eye(300, 3), 1.0), 40 * 300**2),
    "complete": (lambda: po.graphs.complete_graph(300), 40 * 300**2),
    "gaussian grid": (
        lambda: po.graphs.grid_gaussian_graph(grid(0, 1, 18, 2)).similarities,
        40 * 324**2,
    ),
    "pixel": (lambda: po.graphs.pixel_graph(100, 100), 176 * 100**2),
    "chain": (lambda: po.graphs.chain_graph(30_000), 80 * 30_000),
    "group": (lambda: po.graphs.group_graph(np.zeros(300)), 40 * 300**2),
    "lattice": (lambda: po.graphs.LatticeGraph((100, 100)).similarities, 176 * 100**2),
    "grid": (lambda: grid(0, 1, 300, 2), 8 * (7 * 300**2 + 300)),
}


@pytest.mark.parametrize(("make", "n_bytes"), MAKERS.values(), ids=MAKERS)
def test_large_graphs_and_grids_are_refused_with_the_figure(make, n_bytes, request):
    made, peak = peak_of(make)
    assert made is not None
    assert 0.3 * n_bytes < peak < 1.1 * n_bytes
    request.getfixturevalue("small_machine")
    figure = f"needs about {n_bytes / 2**20:.1f} MiB and 1.0 MiB are free"
    with pytest.raises(Refused, match=figure):
        make()


def peak_of(make):
    """What is made, and the most bytes that it took meanwhile."""
    make()  # what is imported and cached is not counted
    tracemalloc.start()
    try:
        return make(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LINE = np.linspace(0, 1, 30_000)[:, None]
CHAIN = po.PairwiseRobustness(po.graphs.chain_graph(3_000))
LARGE = po.GradientMatching(np.ones((3_000, 2))) + CHAIN
TOO_LARGE = {
    "gaussian": (r"33\.5 GiB", lambda: po.graphs.gaussian_graph(LINE, 1.0)),
    **{
        solver: (r"\d{2,3}\.\d MiB", lambda solver=solver: po.solve(LARGE, solver))
        for solver in ("conic", "CLARABEL", "spectral")
    },
}


@pytest.mark.parametrize(("figure", "call"), TOO_LARGE.values(), ids=TOO_LARGE)
@pytest.mark.usefixtures("small_machine")
def test_what_is_too_large_is_refused_before_it_is_made(figure, call):
    def refuse():
        with pytest.raises(Refused, match=rf"about {figure} and 1\.0 MiB are free"):
            call()

    assert peak_of(refuse)[1] < 8 * 3_000**2 / 10
    points = LINE[::10]  # sparse graphs are made nevertheless
    assert po.graphs.gaussian_graph(points, 1e-4, cutoff=0.1).n_edges < 3_000
    assert po.graphs.knn_graph(points, 2).n_edges < 9_000


# ---- batches
COUNTS = st.integers(1, 200)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.integers(1, 5))
def test_blocks_cover_every_row_once_and_keep_to_the_budget(
    n_bytes, most, n_rows, row_bytes, copies
):
    blocks = list(Budget(n_bytes, most).blocks(n_rows, row_bytes, copies))
    assert [n for b in blocks for n in range(b.start, b.stop)] == list(range(n_rows))
    longest = max(b.stop - b.start for b in blocks)
    assert longest == 1 or longest * copies <= min(most, n_bytes // row_bytes)
    assert list(Budget(n_bytes).blocks(0, row_bytes)) == []


@pytest.mark.parametrize(
    ("n_columns", "copies", "expected"),
    [(10, 1, 2**14), (10, 2, 2**13), (1024, 1, 2**12), (1024, 3, 1365), (2**23, 1, 1)],
)
def test_calls_of_models_have_32_mib_and_16384_rows(n_columns, copies, expected):
    first, *_ = row_blocks(10**6, n_columns, copies=copies)
    assert first == slice(0, expected)
    assert expected == MODEL_CALLS.rows(8 * n_columns, copies)


# ---- threads: small work keeps to one, large work keeps those that it was given
def n_threads():
    """The most that a library would take now."""
    return max(info["num_threads"] for info in ThreadpoolController().info())


@pytest.fixture
def two_threads(monkeypatch):
    """Libraries that would take two threads, and a user who did not say so."""
    for name in resources.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with ThreadpoolController().limit(limits=2):
        yield
        assert n_threads() == 2


class Counting(RegressorMixin, BaseEstimator):
    """A model that notes how many threads there are when it is asked."""

    def fit(self, X, _):
        self.n_features_in_, self.seen_ = X.shape[1], []
        return self

    def predict(self, X):
        self.seen_.append(n_threads())
        return X[:, 0] * X[:, 1]


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("n_rows", "expected"), [(10, 1), (ONE_THREAD + 1, 2)])
def test_a_model_is_asked_for_few_rows_with_one_thread(n_rows, expected):
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    model = Counting().fit(X, X[:, 0])
    po.wrap(model).value(X)
    assert model.seen_[0] == expected


@pytest.mark.usefixtures("two_threads")
def test_one_thread_holds_until_the_last_thread_has_left():
    second_is_in, first_is_out = Event(), Event()
    observed = []

    def second():
        with resources.one_thread():
            second_is_in.set()
            first_is_out.wait(10)
            outcome = ThreadpoolController().info()
            blas = [x["num_threads"] for x in outcome if x["user_api"] == "blas"]
            observed.append(max(blas))

    with ThreadPoolExecutor(1) as pool:
        with resources.one_thread():
            observed.append(n_threads())
            work = pool.submit(second)
            second_is_in.wait(10)
        first_is_out.set()
        work.result(10)
    assert observed == [1, 1]


OBEYED = [(20, name, 2) for name in resources.THREAD_VARIABLES]  # by a user who set it


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    ("n_points", "chosen", "expected"), [(20, "", 1), (ONE_THREAD + 1, "", 2), *OBEYED]
)
def test_a_small_problem_is_solved_with_one_thread(
    n_points, chosen, expected, monkeypatch
):
    if chosen:
        monkeypatch.setenv(chosen, "2")
    with resources.threads_of_run(n_points):
        assert n_threads() == expected


@pytest.mark.usefixtures("two_threads")
def test_libraries_that_are_loaded_later_are_limited_too(monkeypatch):
    looked = []

    def looking():
        looked.append(len(sys.modules))
        return ThreadpoolController()

    monkeypatch.setattr(resources, "ThreadpoolController", looking)
    for name in ("a_module_that_came", "another_that_came_later"):
        monkeypatch.setitem(sys.modules, name, object())
        for _ in range(3):
            with resources.few_threads(1):
                assert n_threads() == 1
    assert len(looked) == 2
    for n_columns in (0, 1, 3):  # in order, also where there are none
        result = for_each_column(lambda j: 10 * j, n_columns, SERIAL_BELOW)
        assert result == [10 * j for j in range(n_columns)]


# ---- what is not installed is named together with the extra that installs it
BACKENDS = ["ECOS", "ECOS_BB", "HIGHS", "PIQP"]
REMEDY = re.escape('install it with: pip install "propopt[solvers]"')


@pytest.fixture
def bare(monkeypatch):
    """No backend but those that come with cvxpy."""
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["CLARABEL", "OSQP", "SCS"])


@pytest.mark.usefixtures("bare")
def test_a_backend_that_is_missing_names_its_extra():
    objective = 1.0 * po.GradientMatching(np.eye(3))
    for backend in (*BACKENDS, "ecos", "piqp"):
        sentence = f"solver: {backend.upper()} is not installed; {REMEDY}"
        with pytest.raises(MissingExtra, match=sentence):
            po.solve(objective, backend)
        sentence = f"{backend} is not installed; {REMEDY}"
        if backend.isupper():
            with pytest.raises(Refused, match=sentence):
                po.solve(objective, po.solvers.Conic(backend))


def test_extras_hold_what_they_are_said_to_hold(monkeypatch):
    project = Path(__file__).parents[2] / "pyproject.toml"
    told = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(re.match(rf"{package}\b", line) for line in told[extra]), package
    (line,) = told.pop("all")
    assert set(re.findall(r"[a-z]+", line.partition("[")[2])) == set(told)
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(MissingExtra, match=r'pip install "propopt\[peers\]"'):
        require("shapiq")


@pytest.mark.parametrize(
    ("message", "error"),
    [  # as the linker of Linux says under a limit of memory, and without the package
        ("libarrow.so.2600: failed to map segment from shared object", MemoryError),
        ("libparquet.so: cannot open: Cannot allocate memory", MemoryError),
        ("No module named 'pyarrow'", MissingExtra),
        ("lib.so: cannot allocate memory in static TLS block", MissingExtra),
    ],
)  # fmt: skip
def test_a_library_that_memory_does_not_hold_is_not_missing(
    message, error, monkeypatch
):
    def refuse(_):
        raise ImportError(message)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(error, match="pyarrow"):
        require("pyarrow.dataset")


# ---- one default budget for what is made in parts: its size changes no digit
RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 4))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
TREE = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, Y)
ROWS = X[:7]


def estimated(model):
    best = po.lime.limits(model.predict, ROWS, data=X)
    return [best.coefficients, best.intercept, best.standard_errors]


def variances():
    law = po.lime.GaussianLaw.from_data(X)
    return [po.lime.limits(TREE.predict, ROWS, law=law).r2]


def scatter_in_cells():
    lime = po.lime.limits(TREE, ROWS, data=X)
    return [lime.evidence(1000)[0].cell_sd(np.arange(7))]


CASES = {
    "features": (features, lambda: [po.graphs.cosine_graph(X, 3).similarities.data]),
    "trees": (sampled_limits, partial(estimated, TREE)),
    "variances": (sampled_limits, variances),
    "evidence": (evidence, scatter_in_cells),
}


@pytest.mark.parametrize(("module", "result"), CASES.values(), ids=CASES)
def test_parts_of_one_row_change_no_digit(module, result, monkeypatch):
    whole, counts = list(result()), []

    def blocks(n_rows, row_bytes, copies=1):
        counts.append(n_rows)
        return Budget(1).blocks(n_rows, row_bytes, copies)

    monkeypatch.setattr(module, "BATCH_BUDGET", SimpleNamespace(blocks=blocks))
    for own, expected in zip(result(), whole, strict=True):
        np.testing.assert_array_equal(own, expected)
    assert max(counts) > 1

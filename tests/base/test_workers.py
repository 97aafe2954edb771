"""Interruptions, and workers: they end with their parent, and change no result."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import psutil
import pytest
from command_line import PROGRAM, environment, write
from cvxpy import installed_solvers
from threadpoolctl import threadpool_limits

import propopt as po
from propopt.base.errors import SolverFailure, UnsolvedWarning
from propopt.base.resources import in_workers
from propopt.cli import main
from propopt.losses import Program
from propopt.solvers import Task


posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
FILE = """\
data: {grid: {low: -1, high: 1, per_dimension: 30, dimensions: 1}}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: chain}}
  sparsity: 0.1
sweep: {pairwise_robustness: {low: 0.01, high: 100, points: 10}}
"""
HUGE = FILE.replace("chain", "knn, n_neighbors: 5").replace("points: 10", "points: 900")
HUGE = HUGE.replace("30, dimensions: 1", "30, dimensions: 2") + "solver: CLARABEL\n"


@pytest.fixture
def file(tmp_path):
    return Path(write(tmp_path, "cubic", FILE))


def started(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def gone(process):
    """Ended, though perhaps nobody has asked for its code yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# ---- termination
def terminate(*_, **__):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


@posix
def test_termination_saves_the_rows_that_are_done(file, out, capsys, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    solve, solved = Task.solve, []

    def solving(task, *arguments):
        solved.append(arguments)
        return terminate() if len(solved) == 5 else solve(task, *arguments)

    monkeypatch.setattr(Task, "solve", solving)
    assert main(["sweep", str(file), "-o", str(out), "-q"]) == 130
    assert len(pd.read_csv(out / "cubic.csv")) == 4
    assert capsys.readouterr().err.splitlines() == [
        "warning: interrupted: 4 of 10 weights are done",
        "propopt: interrupted; written files are complete",
    ]
    assert signal.getsignal(signal.SIGTERM) == before


@posix
def test_termination_while_a_file_is_written_leaves_no_draft(
    file, out, capsys, monkeypatch
):
    def terminated(_, path, **__):
        Path(path).write_text("half of")
        terminate()

    monkeypatch.setattr(pd.DataFrame, "to_csv", terminated)
    assert main(["sweep", str(file), "-o", str(out), "-q"]) == 130
    assert list(out.iterdir()) == []
    assert "written files are complete" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("error", [ImportError, MemoryError, OSError, RuntimeError])
def test_termination_counts_though_another_error_takes_its_place(
    error, file, capsys, monkeypatch
):
    """As in C code that imports modules, and in the start of workers."""

    def replacing(*_):
        try:
            terminate()
        except KeyboardInterrupt:
            raise error("a module failed to import") from None

    monkeypatch.setattr(po.problems, "read_problem", replacing)
    assert main(["check", str(file)]) == 130
    assert "interrupted" in capsys.readouterr().err
    monkeypatch.setattr(po.problems, "read_problem", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # the next command is not interrupted
        main(["check", str(file)])


@posix
def test_termination_ends_workers(tmp_path, out):
    (tmp_path / "huge.yaml").write_text(HUGE)
    arguments = ["sweep", tmp_path / "huge.yaml", "-o", out, "-q", "-j", 2]
    with started(PROGRAM, *arguments) as run:
        home = psutil.Process(run.pid)
        wait_for(lambda: len(home.children()) >= 2)
        workers = home.children()
        run.send_signal(signal.SIGTERM)
        told = run.communicate(timeout=300)[1]
    assert run.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    wait_for(lambda: all(map(gone, workers)), 5.0)


# ---- workers without a parent
SLEEPERS = """\
import os, sys, time
from pathlib import Path
import numpy as np, propopt as po
from propopt.solvers import Solver

class Sleeper(Solver):
    name = "sleeper"

    def __init__(self, folder):
        self.folder = Path(folder)

    def refusal(self, program):
        return None

    def prepare(self, program):
        (self.folder / str(os.getpid())).touch()
        time.sleep(300)

objective = po.GradientMatching(np.eye(3)) + po.Sparsity()
sleeper = Sleeper(sys.argv[1])
po.sweep(objective, {"sparsity": np.arange(1, 10)}, solver=sleeper, n_jobs=2)
"""


@posix
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    with started(SLEEPERS, tmp_path) as run:
        wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
        workers = [psutil.Process(int(path.name)) for path in tmp_path.iterdir()]
        assert not any(map(gone, workers))
        run.kill()
        wait_for(lambda: all(map(gone, workers)), 5.0)


@posix
def test_a_worker_that_is_killed_is_told_in_a_sentence():
    with pytest.raises(SolverFailure, match="a worker process was killed"):
        list(in_workers([os.abort, os.abort], 2))


def losing(calls, _):
    yield next(iter(calls))()
    raise SolverFailure("a worker process was killed")


def threads():
    import scipy.linalg  # noqa: F401  # its BLAS is another than NumPy's
    from threadpoolctl import threadpool_info

    return max(x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas")


def test_results_come_in_the_order_of_the_calls_and_workers_have_one_thread(
    monkeypatch,
):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    with threadpool_limits(1):  # where the parent has one
        calls = [*(partial(abs, -n) for n in range(5)), threads, threads]
        assert list(in_workers(calls, 2)) == [*range(5), 1, 1]


# ---- workers change nothing
@pytest.fixture
def problem(rng):
    X = rng.normal(size=(40, 4))
    graph = po.graphs.knn_graph(X, 4)
    return {
        "gradient_matching": po.GradientMatching(3 * X**2 - X[:, ::-1]),
        "function_matching": po.losses.FunctionMatching(X, (X**3).sum(axis=1)),
        "pairwise_robustness": po.PairwiseRobustness(graph),
        "max_difference_robustness": po.losses.MaxDifferenceRobustness(graph),
        "sparsity": po.Sparsity(),
    }


SOLVERS = ["lasso", "splitting", "normal_equations", "CLARABEL", "OSQP", "SCS"]
OTHERS = {
    "splitting": "max_difference_robustness",
    "normal_equations": "function_matching",
}
"""What a solver minimises besides, if not sparsity."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.filterwarnings("ignore::propopt.base.errors.UncertifiedWarning")
def test_every_number_of_workers_gives_the_same_digits(problem, solver):
    objective = problem["gradient_matching"] + problem["pairwise_robustness"]
    objective += 0.5 * problem[OTHERS.get(solver, "sparsity")]
    weights = {"pairwise_robustness": np.geomspace(1e-2, 1e2, 10)}
    curves = [po.sweep(objective, weights, solver=solver, n_jobs=n) for n in (1, 3)]
    one, other = (curve.to_frame().drop(columns="seconds") for curve in curves)
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    for points in zip(*(curve.optimized for curve in curves), strict=True):
        assert len({point.attributions.tobytes() for point in points}) == 1


@pytest.mark.parametrize("solver", [*SOLVERS, "PIQP", "ECOS", "HIGHS"])
def test_a_solver_without_a_start_has_forgotten_what_it_solved(problem, solver):
    if solver.isupper() and solver not in installed_solvers():
        pytest.skip(f"{solver} is not installed")
    faithful = problem["gradient_matching"]
    if solver == "HIGHS":  # for linear programs
        faithful = po.GradientMatching(faithful.G, norm="l1")
    else:
        faithful = faithful + problem["pairwise_robustness"]
    besides = OTHERS.get(solver, "sparsity")
    objective = faithful + 0.5 * problem[besides]
    other = objective.with_weights({besides: 0.05})
    fresh, used = (Task(Program(objective.losses), solver) for _ in range(2))
    weights = objective.coefficients
    used.solve(weights, 1e-6, used.solve(other.coefficients, 1e-6))
    again = used.solve(weights, 1e-6)
    assert again.W.tobytes() == fresh.solve(weights, 1e-6).W.tobytes()


def test_a_share_of_the_weights_starts_from_nothing(problem, monkeypatch):
    starts, solve = [], Task.solve

    def noting(task, objective, tolerance, start=None):
        starts.append(start is None)
        return solve(task, objective, tolerance, start)

    monkeypatch.setattr(Task, "solve", noting)
    objective = problem["gradient_matching"] + 0.5 * problem["sparsity"]
    weights = {"sparsity": np.geomspace(0.01, 1, 25)}
    for n_jobs in (1, 2):
        with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
            po.sweep(objective, weights)
        assert (len(starts), sum(starts)) == (25, 4)
        starts.clear()
    # and what other workers found stays when one is killed
    monkeypatch.setattr("propopt.explaining.sweeping.in_workers", losing)
    with pytest.warns(UnsolvedWarning, match="a worker process was killed"):
        curve = po.sweep(objective, weights, n_jobs=2)
    assert len(curve.optimized) == 7


class Losing:
    """In place of joblib.Parallel: dask cancels calls, as their table is lost."""

    def __init__(self, *_, losses, sent, **__):
        self.losses, self.sent = losses, sent

    def __call__(self, calls):
        for k, (function, arguments, _) in enumerate(calls):
            self.sent.append(*arguments)
            if k == 2 and self.losses:
                self.losses.pop()
                raise CancelledError
            yield function(*arguments)


@pytest.mark.parametrize("losses", [1, 3, 4])
def test_calls_that_workers_of_dask_have_lost_are_sent_again(losses, monkeypatch):
    sent = []
    parallel = partial(Losing, losses=[None] * losses, sent=sent)
    monkeypatch.setattr(joblib, "Parallel", parallel)
    results = in_workers([partial(abs, -k) for k in range(12)], 2)
    if losses > 3:  # such as a table that fits into no worker
        with pytest.raises(SolverFailure, match="killed"):
            list(results)
        return
    assert list(results) == list(range(12))
    lost = [-2, -4, -6][:losses]  # two results, then the next loss
    assert sorted(sent) == sorted([-k for k in range(12)] + lost)

"""What every test has: random numbers, a folder for files, one thread per process."""

import os
from types import SimpleNamespace


for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy loads its BLAS

import numpy as np  # noqa: E402  # the lines above have to come first
import psutil  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

import propopt as po  # noqa: E402
from propopt.base.kernels import why_no_kernels  # noqa: E402


# the same examples in every run; solvers are slow at times, which is no failure
settings.register_profile(
    "propopt", derandomize=True, deadline=None, database=None, max_examples=25
)
settings.load_profile("propopt")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20241023)


@pytest.fixture
def out(tmp_path):
    """A folder for what a command writes."""
    return tmp_path / "out"


@pytest.fixture(params=["c", "numpy"])
def kernels(request, monkeypatch):
    """Compiled kernels, and what NumPy does in their place."""
    reason = why_no_kernels()
    if request.param == "c" and reason is not None:
        pytest.skip(reason)
    monkeypatch.setenv("PROPOPT_KERNELS", request.param)
    return request.param


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with one mebibyte of free memory."""
    free = SimpleNamespace(available=2**20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)


@pytest.fixture
def no_work(monkeypatch):
    """Fail if a model is fitted, a function evaluated or a baseline made."""

    def fail(problem):
        pytest.fail(f"{problem.name} was worked on")

    monkeypatch.setattr(po.problems.Problem, "points", property(fail))
    monkeypatch.setattr(po.problems.Problem, "baselines", fail)

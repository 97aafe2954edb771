"""What is not installed is named together with the extra that installs it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from command_line import python

import propopt as po
from propopt.base.errors import MissingExtra, Refused
from propopt.base.resources import EXTRAS, require
from propopt.cli import main


BACKENDS = ["ECOS", "ECOS_BB", "HIGHS", "PIQP"]
REMEDY = re.escape('install it with: pip install "propopt[solvers]"')


@pytest.fixture
def bare(monkeypatch):
    """No backend but those that come with cvxpy."""
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["CLARABEL", "OSQP", "SCS"])


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("backend", [*BACKENDS, "ecos", "piqp"])
def test_a_backend_that_is_missing_names_its_extra(backend):
    objective = 1.0 * po.GradientMatching(np.eye(3))
    sentence = f"solver: {backend.upper()} is not installed; {REMEDY}"
    with pytest.raises(MissingExtra, match=sentence):
        po.solve(objective, backend)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_solver_made_of_it_names_the_extra_too(backend):
    objective = 1.0 * po.GradientMatching(np.eye(3))
    with pytest.raises(Refused, match=f"{backend} is not installed; {REMEDY}"):
        po.solve(objective, po.solvers.Conic(backend))


@pytest.mark.usefixtures("bare")
def test_a_problem_file_says_so_by_line(tmp_path, capsys):
    file = tmp_path / "cubic.yaml"
    file.write_text(
        "data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}}\n"
        "function: {name: sine}\nobjective: {gradient_matching: 1}\nsolver: ECOS\n"
    )
    assert main(["check", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"{file}:4: solver: ECOS is not installed; install it with: pip install "
        '"propopt[solvers]"\n'
    )


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_extras_hold_what_they_are_said_to_hold(package, extra):
    project = Path(__file__).parents[2] / "pyproject.toml"
    told = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    assert any(re.match(rf"{package}\b", line) for line in told[extra])


def test_all_installs_every_extra():
    project = Path(__file__).parents[2] / "pyproject.toml"
    told = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    (line,) = told.pop("all")
    assert set(re.findall(r"[a-z]+", line.partition("[")[2])) == set(told)


def test_interactions_need_no_extra():
    """Workers of dask and Shapley interactions alone ask for theirs."""
    code = (
        "import sys\n"
        "for name in ('dask', 'distributed', 'shapiq', 'shap'):\n"
        "    sys.modules[name] = None\n"
        "import numpy as np\n"
        "from sklearn.linear_model import LinearRegression\n"
        "import propopt as po\n"
        "X = np.random.default_rng(0).normal(size=(40, 3))\n"
        "split = po.interactions.DataSplit()\n"
        "fitted = po.interactions.ILOCO(LinearRegression(), split)\n"
        "fitted.fit(X, X.sum(axis=1) + X[:, 0] * X[:, 1])\n"
        "assert len(fitted.result_) == 3\n"
    )
    ran = python("-W", "error", "-c", code)
    assert ran.returncode == 0, ran.stderr


def test_shapley_interactions_name_their_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(MissingExtra, match=r'pip install "propopt\[shapley\]"'):
        require("shapiq")

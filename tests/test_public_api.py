"""The front door: complete, sorted, documented, and light to import."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import propopt as po
from propopt import errors, explainers, functions, losses, metrics, plots, solvers


STUB = Path(po.__file__).with_name("__init__.pyi")
NAMES = sorted(po.__all__)
PACKAGES = (explainers, functions, losses, metrics, plots, solvers)


def stub_names() -> list[str]:
    body = ast.parse(STUB.read_text(encoding="utf-8")).body
    return [
        alias.asname or alias.name
        for node in body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def public_methods(kind: type) -> dict[str, object]:
    """Public functions and properties that propopt itself defines."""
    return {
        name: member
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and any(name in vars(base) and _ours(base) for base in kind.__mro__)
    }


def _ours(kind: type) -> bool:
    return kind.__module__.startswith("propopt")


def public_things() -> dict[str, object]:
    things = {f"propopt.{name}": getattr(po, name) for name in NAMES}
    for package in PACKAGES:
        for name in package.__all__:
            things[f"{package.__name__}.{name}"] = getattr(package, name)
    for name, thing in vars(errors).items():
        if isinstance(thing, type):
            things[f"propopt.errors.{name}"] = thing
    return {
        name: thing
        for name, thing in things.items()
        if inspect.isclass(thing)
        or inspect.isfunction(thing)
        or inspect.ismodule(thing)
    }


THINGS = public_things()


def test_all_lists_the_names_of_the_stub():
    assert set(po.__all__) == set(stub_names())


def test_all_is_sorted_strings_without_doubles():
    assert list(po.__all__) == sorted(set(po.__all__))
    assert all(isinstance(name, str) for name in po.__all__)


def test_dir_lists_the_public_names():
    assert set(po.__all__) <= set(dir(po))


@pytest.mark.parametrize("name", NAMES)
def test_public_name_is_there(name):
    assert getattr(po, name) is not None


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        po.nothing  # noqa: B018  # the access is what raises


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_names_of_a_package_are_there_once(package):
    assert len(package.__all__) == len(set(package.__all__))
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_every_loss_and_solver_for_users_is_public():
    from propopt.losses import Faithfulness, PropertyLoss
    from propopt.solvers import Solver

    kinds = {
        *PropertyLoss.__subclasses__(),
        *Faithfulness.__subclasses__(),
        *Solver.__subclasses__(),
    }
    ours = {kind.__name__ for kind in kinds if _ours(kind)} - {"Faithfulness"}
    ours = {name for name in ours if not name.startswith("_")}
    assert ours <= {*losses.__all__, *solvers.__all__}


@pytest.mark.parametrize("name", THINGS)
def test_public_thing_is_documented(name):
    text = inspect.getdoc(THINGS[name])
    assert text
    assert len(text.split()) >= 3
    assert not text.startswith(f"{name.rsplit('.', 1)[-1]}(")  # a dataclass's own text


@pytest.mark.parametrize(
    "name", [name for name, thing in THINGS.items() if inspect.isclass(thing)]
)
def test_public_methods_are_documented_here_or_by_their_base(name):
    bare = [
        method
        for method, member in public_methods(THINGS[name]).items()
        if not inspect.getdoc(getattr(THINGS[name], method, member))
    ]
    assert bare == []


def test_every_error_is_a_propopt_error():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in kinds:
        assert issubclass(kind, errors.PropoptError | errors.PropoptWarning)


def test_invalid_input_is_a_value_error():
    assert issubclass(errors.InvalidInput, ValueError)


def test_version_is_that_of_the_package():
    assert po.__version__.count(".") == 2


def test_importing_propopt_imports_nothing_heavy():
    code = "import sys, json, propopt; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        cwd=STUB.parents[1],
    )
    modules = set(json.loads(done.stdout))
    heavy = {
        "cvxpy",
        "sklearn",
        "pandas",
        "scipy",
        "matplotlib",
        "numpy",
        "torch",
        "shap",
    }
    assert modules & heavy == set()
    assert "propopt" in modules

"""The front door: complete, sorted, documented, and light to import."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import propopt as po
from propopt.base import errors
from propopt.explaining.explainers import Baseline
from propopt.explaining.metrics import Metric
from propopt.inductive import FeatureBasis, InducingRule
from propopt.losses import PropertyLoss
from propopt.losses.graphs import Graph
from propopt.solvers import Solver
from propopt.solvers.task import find_solver


ROOT = Path(po.__file__).parent
REPOSITORY = ROOT.parent
STUB = ROOT / "__init__.pyi"
NAMES = sorted(po.__all__)
NAMESPACES = (
    "explainers",
    "functions",
    "graphs",
    "inductive",
    "interactions",
    "lime",
    "losses",
    "metrics",
    "plots",
    "problems",
    "solvers",
)
PACKAGES = tuple(getattr(po, name) for name in NAMESPACES)
EVERYDAY = {
    "Bound",
    "Certain",
    "Certificate",
    "Completeness",
    "ConclusionStability",
    "Explainer",
    "Explanation",
    "FunctionMatching",
    "GradientMatching",
    "ImageShape",
    "KernelRobustness",
    "MaxDifferenceRobustness",
    "Objective",
    "PairwiseRobustness",
    "PropertyLoss",
    "Shares",
    "SharedRobustness",
    "Smoothness",
    "Sparsity",
    "TableSchema",
    "TextSchema",
    "TradeOffs",
    "certify",
    "chain_graph",
    "complete_graph",
    "correlation_graph",
    "explain",
    "gaussian_graph",
    "graph_from_matrix",
    "grid_gaussian_graph",
    "group_graph",
    "knn_graph",
    "pixel_graph",
    "smoothed",
    "solve",
    "sweep",
    "threshold_graph",
    "wrap",
}
"""What needs no namespace."""

KINDS = {
    "explainers": {Baseline},
    "graphs": {Graph},
    "inductive": {FeatureBasis, InducingRule},
    "losses": {PropertyLoss},
    "metrics": {Metric},
}
"""Base classes of which a namespace shows every kind."""


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
            things[f"propopt.base.errors.{name}"] = thing
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


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        po.nothing  # noqa: B018  # the access is what raises


def test_flat_are_everyday_names_and_namespaces():
    assert set(po.__all__) == {*EVERYDAY, *NAMESPACES, "errors"}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_namespace_names_each_thing_once_and_has_it(package):
    names = list(package.__all__)
    assert len(names) == len(set(names))
    assert all(getattr(package, name) is not None for name in names)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_namespace_lists_all_that_it_holds(package):
    assert set(package.__all__) == set(_bound(Path(package.__file__)))


def _bound(path: Path) -> Iterator[str]:
    """Names that a package imports from the library, or defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "")[:7] == "propopt":
            yield from (alias.asname or alias.name for alias in node.names)
    yield from public_definitions(tree)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_namespace_says_what_it_is_for(package):
    assert package.__doc__
    assert len(package.__doc__.split("\n")[0].split()) >= 4


def descendants(kind: type) -> Iterator[type]:
    for child in kind.__subclasses__():
        yield child
        yield from descendants(child)


@pytest.mark.parametrize("namespace", KINDS)
def test_a_namespace_has_every_kind_of_what_it_is_for(namespace):
    kinds = {
        child
        for kind in KINDS[namespace]
        for child in (kind, *descendants(kind))
        if child.__module__.startswith(f"{getattr(po, namespace).__name__}.")
        and not child.__name__.startswith("_")
        and (child is kind or not inspect.isabstract(child))
    }
    assert {kind.__name__ for kind in kinds} <= set(getattr(po, namespace).__all__)


INSIDE = {"Complete", "CompleteEntries", "Entries", "Restricted", "Transposed"}
"""Solvers that put a program in other words; nobody asks for them."""


def test_every_other_solver_is_asked_for_by_its_name():
    kinds = {
        kind
        for kind in descendants(Solver)
        if kind.__module__.startswith("propopt.solvers.")
        and not inspect.isabstract(kind)
        and kind.__name__ not in INSIDE
    }
    assert len(kinds) >= 10
    assert {type(find_solver(kind().name)) for kind in kinds} == kinds


def names_in_pages() -> set[str]:
    """Words that stand as code in the pages and the examples."""
    words: set[str] = set()
    for page in [REPOSITORY / "README.md", *REPOSITORY.glob("docs/*.md")]:
        text = page.read_text(encoding="utf-8")
        parts = text.split("```")  # every other one is a block of code
        spans = re.findall(r"`([^`]+)`", " ".join(parts[::2]))
        words |= set(re.findall(r"\w+", " ".join([*parts[1::2], *spans])))
    for path in REPOSITORY.glob("examples/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(attr=name):
                    words.add(name)
                case ast.Name(id=name):
                    words.add(name)
                case _:
                    pass
    return words


def test_every_public_name_is_in_a_page_or_an_example():
    public = {name.rpartition(".")[2] for name in THINGS} | {
        name for package in PACKAGES for name in package.__all__
    }
    assert sorted(public - names_in_pages()) == []


def public_definitions(tree: ast.Module) -> Iterator[str]:
    """Public names that a module defines: classes, functions, constants, types."""
    for node in tree.body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names = [node.name]
            case ast.Assign():
                names = [part.id for part in _parts(node.targets)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.stmt(name=ast.Name(id=name)):  # type X = ..., from Python 3.12
                names = [name]
            case _:
                names = []
        yield from (name for name in names if not name.startswith("_"))


def test_no_public_name_is_defined_in_two_modules():
    homes: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in public_definitions(tree):
            homes.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def _parts(targets: list[ast.expr]) -> Iterator[ast.Name]:
    return (
        part
        for target in targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )


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


def test_a_namespace_is_loaded_when_it_is_first_used():
    code = (
        "import sys, json, propopt\n"
        f"names = {NAMESPACES!r}\n"
        "early = [name for name in names if f'propopt.{name}' in sys.modules]\n"
        "late = [getattr(propopt, name).__name__ for name in names]\n"
        "print(json.dumps([early, late]))"
    )
    early, late = json.loads(_python(code))
    assert early == []
    assert [name.rpartition(".")[2] for name in late] == list(NAMESPACES)


def test_errors_are_there_before_anything_else_is_used():
    assert _python("import propopt as po; print(po.errors.InvalidInput.__name__)")


def test_importing_propopt_imports_nothing_heavy():
    code = "import sys, json, propopt; print(json.dumps(sorted(sys.modules)))"
    modules = set(json.loads(_python(code)))
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


UNUSED = {
    *("matplotlib", "PIL", "cvxpy", "shap", "lime", "torch", "pydantic", "yaml"),
    *(f"propopt.{room}" for room in ("plots", "explainers", "lime", "interactions")),
    *(f"propopt.{room}" for room in ("problems", "inductive", "metrics")),
}
"""What explaining a table has no use for: it draws nothing and needs no cones."""


@pytest.mark.parametrize("model", ["LogisticRegression()", "RandomForestClassifier(5)"])
def test_explaining_a_table_imports_what_it_uses(model):
    code = (
        "import sys, json, propopt as po\n"
        "from sklearn.datasets import load_iris\n"
        "from sklearn.ensemble import RandomForestClassifier\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "X, y = load_iris(return_X_y=True, as_frame=True)\n"
        f"model = {model}.fit(X / X.std(), y == 1)\n"
        "best = po.explain(model, X.iloc[::5] / X.std())\n"
        "print(json.dumps([best.gap, sorted(sys.modules)]))"
    )
    gap, modules = json.loads(_python(code))
    assert gap < 1e-6
    assert set(modules) & UNUSED == set()


def _python(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        cwd=ROOT.parent,
    )
    return done.stdout

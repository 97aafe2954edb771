"""The front door: complete, sorted, documented, and light to import."""

import ast
import inspect
import json
import pydoc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import propopt as po
from propopt.base import errors
from propopt.explaining.explainers import Baseline
from propopt.inductive import FeatureBasis, InducingRule
from propopt.losses import PropertyLoss
from propopt.losses.graphs import Graph
from propopt.results.result import Result
from propopt.solvers import Solver
from propopt.solvers.task import find_solver


ROOT = Path(po.__file__).parent
STUB = ROOT / "__init__.pyi"
EVERYDAY = {
    *("explain", "Explainer", "audit", "compare", "sweep", "TradeOffs", "solve"),
    *(
        "Sampling",
        "wrap",
        "GradientMatching",
        "PairwiseRobustness",
        "Smoothness",
        "Sparsity",
    ),
}
ROOMS = "explainers functions graphs inductive interactions lime losses"
NAMESPACES = tuple(
    f"{ROOMS} null_models plots problems proofs results shap solvers".split()
)
PACKAGES = tuple(getattr(po, name) for name in NAMESPACES)
NAMES = sorted({*EVERYDAY, *NAMESPACES, "errors"})

KINDS = {
    "explainers": {Baseline},
    "graphs": {Graph},
    "inductive": {FeatureBasis, InducingRule},
    "losses": {PropertyLoss},
}
"""Base classes of which a namespace shows every kind."""


def public_methods(kind: type) -> dict[str, object]:
    """Public functions and properties that propopt itself defines."""
    return {
        name: member
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property))
        and any(name in vars(b) and b.__module__[:7] == "propopt" for b in kind.__mro__)
    }


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


def test_few_names_are_completed_and_the_stub_has_them():
    nodes = ast.parse(STUB.read_text(encoding="utf-8")).body
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    stub = [alias.asname or alias.name for node in froms for alias in node.names]
    assert sorted(stub) == NAMES
    completed = {name for name in dir(po) if name[0] != "_"}
    assert completed == {*EVERYDAY, *NAMESPACES}
    assert len(completed) <= 27
    with pytest.raises(AttributeError, match="nothing"):
        po.nothing  # noqa: B018  # the access is what raises
    assert po.__version__.count(".") == 2


NOT_CALLED = {"Code", "Bound", "Objective", "Program", "Certificate", "Solution"}
NOT_CALLED |= {"SimilarityGraph", "LatticeGraph", "GridGaussianGraph"}
NOT_CALLED |= {"ExplanationsByClass"}
"""Classes that propopt makes, as it makes all results."""

CALLED = {
    name: thing
    for name, thing in THINGS.items()
    if inspect.isfunction(thing)
    or (
        inspect.isclass(thing)
        and not issubclass(thing, BaseException | Warning)
        and not inspect.isabstract(thing)
        and not issubclass(thing, Result)
        and thing.__name__ not in NOT_CALLED
    )
}


@pytest.mark.parametrize("name", CALLED)
def test_an_unknown_argument_is_refused_with_those_that_there_are(name):
    words = r"has no argument 'colour'.*; expected one of: "
    with pytest.raises(errors.UnknownArgument, match=words) as raised:
        CALLED[name](colour=1)
    assert isinstance(raised.value, TypeError)  # as Python says it


@pytest.mark.parametrize(
    "place",
    [po, *(package for package in PACKAGES if package is not po.shap)],
    ids=lambda place: place.__name__,
)
def test_a_name_that_a_namespace_has_not_is_an_error_of_ours(place):
    message = r"^po\S* has no 'TreeExplainer'; instead"
    with pytest.raises(errors.NoSuchName, match=message):
        _ = place.TreeExplainer
    known = next(name for name in getattr(place, "__all__", NAMES) if len(name) > 5)
    with pytest.raises(errors.NoSuchName, match=f"did you mean '{known}'"):
        getattr(place, f"{known}q")
    assert not hasattr(place, "_repr_html_")


def test_help_is_a_page_that_has_every_name():
    page = pydoc.plaintext.document(po)
    about = page.partition("PACKAGE CONTENTS")[0]
    assert [name for name in dir(po) if f"po.{name}" not in about] == []
    assert len(page.splitlines()) < 100


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_a_namespace_lists_all_that_it_holds_once_and_says_what_it_is_for(package):
    names = list(package.__all__)
    assert len(names) == len(set(names))
    assert all(getattr(package, name) is not None for name in names)
    source = Path(package.__file__)
    stub = source.with_suffix(".pyi")
    assert set(names) <= set(_bound(stub if stub.is_file() else source))
    if source.name == "__init__.py":
        bound = set(_bound(stub if stub.is_file() else source))
        assert set(names) == {name for name in bound if name[0] != "_"}
    assert package.__doc__
    assert len(package.__doc__.split("\n")[0].split()) >= 4


def _bound(path: Path) -> Iterator[str]:
    """Names that a package imports from the library, or defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (
            node.level or (node.module or "")[:7] == "propopt"
        ):
            yield from (alias.asname or alias.name for alias in node.names)
    yield from public_definitions(tree)


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


INSIDE = {
    *("CompletenessReduction", "ConstrainedEntryCg", "EntryReduction"),
    *("ShiftReduction", "TransposeReduction"),
}
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
    of_shap = {name: {f"shap/{name.lower()}.py"} for name in po.shap.__all__}
    twice = {name: where - of_shap.get(name, set()) for name, where in homes.items()}
    assert {name: where for name, where in twice.items() if len(where) > 1} == {}


def _parts(targets: list[ast.expr]) -> Iterator[ast.Name]:
    return (
        part
        for target in targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )


def test_public_things_and_their_methods_are_documented():
    for name, thing in THINGS.items():
        text = inspect.getdoc(thing)
        assert text, name
        assert len(text.split()) >= 3, name
        own = f"{name.rsplit('.', 1)[-1]}("  # a dataclass's own text
        assert not text.startswith(own), name
        if not inspect.isclass(thing):
            continue
        for method, member in public_methods(thing).items():  # or by their base
            assert inspect.getdoc(getattr(thing, method, member)), (name, method)


def test_every_error_is_a_propopt_error():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in kinds:
        assert issubclass(kind, errors.PropoptError | errors.PropoptWarning)
    assert issubclass(errors.InvalidInput, ValueError)


# ---- light to import
HEAVY = {"cvxpy", "sklearn", "pandas", "scipy", "matplotlib", "numpy", "torch", "shap"}


def test_propopt_imports_nothing_heavy_and_each_namespace_is_there_before_any_other():
    code = (
        "import importlib, json, sys, propopt\n"
        "modules, late = sorted(sys.modules), []\n"
        "error = propopt.errors.InvalidInput.__name__\n"
        f"for name in {NAMESPACES!r}:\n"
        "    for module in [m for m in sys.modules if m.split('.')[0] == 'propopt']:\n"
        "        del sys.modules[module]\n"
        "    namespace = getattr(importlib.import_module('propopt'), name)\n"
        "    [getattr(namespace, found) for found in namespace.__all__]\n"
        "    late.append(namespace.__name__)\n"
        "print(json.dumps([modules, late, error]))"
    )
    modules, late, error = json.loads(_python(code))
    assert error == "InvalidInput"
    assert "propopt" in modules
    assert set(modules) & {*HEAVY, *(f"propopt.{name}" for name in NAMESPACES)} == set()
    assert [name.rpartition(".")[2] for name in late] == list(NAMESPACES)


UNUSED = {
    *("matplotlib", "PIL", "cvxpy", "shap", "lime", "torch", "pydantic", "yaml"),
    *("clarabel", "osqp", "jinja2", "sklearn.gaussian_process"),
    *(f"propopt.{room}" for room in ("lime", "interactions")),
    *(f"propopt.{room}" for room in ("problems", "inductive")),
    *(f"propopt.explaining.{room}" for room in ("explainers", "audit")),
    *("propopt.functions.texts", "propopt.functions.formulas"),
    *("dask", "distributed", "pyarrow.dataset", "pyarrow.parquet"),
    "propopt.explaining.large_tables",
}
"""What explaining a table of trees has no use for: it draws nothing, needs no cones."""

OF_OTHER_MODELS = {
    *("linear_model", "ensemble", "svm", "neighbors", "neural_network", "naive_bayes"),
    *("feature_extraction", "impute", "feature_selection", "cluster"),
}
"""Modules of scikit-learn that readers of trees know by names."""

_TABLE = (
    "import sys, json, propopt as po\n"
    "import pandas as pd, numpy as np\n"
    "rng = np.random.default_rng(0)\n"
    "X = pd.DataFrame(rng.normal(size=(40, 4)), columns=list('abcd'))\n"
    "y = (X.a * X.b > 0).astype(int)\n"
)
_TOLD = "print(json.dumps([best.gap, sorted(sys.modules)]))"

EXPLAINED = {
    "LightGBM": (
        "from lightgbm import LGBMClassifier as Model\n"
        "model = Model(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y)\n",
        {*UNUSED, *(f"sklearn.{name}" for name in OF_OTHER_MODELS)}
        | {"sklearn.gaussian_process", "propopt.structures.networks"},
    ),
    "histogram trees": (
        "from sklearn.ensemble import HistGradientBoostingClassifier as Model\n"
        "model = Model(max_iter=5).fit(X, y)\n",
        {*UNUSED, "propopt.structures.networks", "sklearn.naive_bayes"},
    ),
    "a logistic regression": (
        "from sklearn.linear_model import LogisticRegression as Model\n"
        "model = Model().fit(X, y)\n",
        UNUSED - {"sklearn.gaussian_process"},
    ),
}
"""By model: how it is fitted, and what explaining it does not import."""


@pytest.mark.parametrize("name", EXPLAINED)
def test_explaining_a_table_imports_what_it_uses(name):
    fit, unused = EXPLAINED[name]
    if name == "LightGBM":
        pytest.importorskip("lightgbm")
    gap, modules = json.loads(
        _python(f"{_TABLE}{fit}best = po.explain(model, X)\n{_TOLD}")
    )
    assert gap < 1e-6
    assert set(modules) & unused == set()


COMMANDS = {
    "--help": {*HEAVY, "pydantic", "yaml", "rich", "propopt.problems"},
    "check problems/breast_cancer.yaml": {
        *("cvxpy", "matplotlib", "shap", "lime", "torch", "lightgbm", "jinja2"),
        *("sklearn.cluster", "osqp", "clarabel"),
    },
}
"""By command: what it does not import."""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_what_it_uses(command):
    code = (
        "import atexit, json, sys\n"
        "from propopt.cli import main\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules))))\n"
        f"sys.exit(main({command.split()!r}))"
    )
    modules = json.loads(_python(code).splitlines()[-1])
    assert set(modules) & COMMANDS[command] == set()


def test_an_optimum_is_solved_and_printed_without_scikit_learn():
    code = (
        "import json, sys, numpy as np, propopt as po\n"
        "text = str(po.solve(1.0 * po.GradientMatching(np.eye(3))))\n"
        "print(json.dumps([text, sorted(sys.modules)]))"
    )
    text, modules = json.loads(_python(code))
    assert "gap to optimum" in text
    assert "sklearn" not in modules


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

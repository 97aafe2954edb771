"""Files and folders that docstrings name exist."""

import ast
import re
from pathlib import Path

import propopt as po


PACKAGE = Path(po.__file__).parent
ROOT = PACKAGE.parent
FOLDERS = "propopt|tests|docs|papers|tools|benchmarks|examples|problems"
PATH = re.compile(rf"\b((?:{FOLDERS})/[\w./-]*\w)")


def docstrings(tree):
    """Texts that stand alone in a module: docstrings, also those of constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def exists(path):
    names = (path, f"{path}.py")
    return any((folder / name).exists() for folder in (ROOT, PACKAGE) for name in names)


def test_paths_in_docstrings_exist():
    named = {
        (file.relative_to(ROOT).as_posix(), path)
        for file in PACKAGE.rglob("*.py")
        for one in docstrings(ast.parse(file.read_text("utf-8")))
        for path in PATH.findall(one)
    }
    assert len(named) > 3
    missing = sorted(pair for pair in named if not exists(pair[1]))
    assert not missing, f"docstrings name paths that are not there: {missing}"

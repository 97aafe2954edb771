"""``check``, ``schema``, ``--version`` and ``--help``."""

from __future__ import annotations

import json

import pytest
from command_line import FILE, python, write

import propopt as po
from propopt.cli import main


def test_check(file, tmp_path, capsys):
    assert main(["check", file]) == 0
    assert capsys.readouterr() == (f"{file}: valid\n", "")
    bad = write(tmp_path, "bad", FILE + "seed: -1\ntolerance: 0\n")
    assert main(["check", bad, str(tmp_path / "none.yaml"), file]) == 2
    printed = capsys.readouterr()
    assert printed.out == f"{file}: valid\n"
    assert printed.err.splitlines() == [
        f"{bad}:12: seed: expected a number >= 0, got -1",
        f"{bad}:13: tolerance: expected a number > 0, got 0",
        f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory",
    ]


def test_schema(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["data"]
    jobs = ("objective", "explain", "lime", "interactions")
    assert schema["oneOf"] == [{"required": [job]} for job in jobs]
    loss = schema["$defs"]["Losses"]["properties"]["sparsity"]["anyOf"]
    assert {"$ref": "#/$defs/SparsityLoss"} in loss


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"propopt {po.__version__}\n"


HEAVY = ("numpy", "scipy", "cvxpy", "sklearn", "pandas", "matplotlib", "pydantic")


def test_check_imports_neither_pictures_nor_solvers_nor_baselines(tmp_path):
    path = tmp_path / "problem.yaml"
    path.write_text(
        "data: {sklearn: diabetes}\nmodel: {kind: mlp}\n"
        "objective: {gradient_matching: 1, sparsity: 0.1}\n"
    )
    code = (
        "import sys\nfrom propopt.cli import main\n"
        f"try: main(['check', {str(path)!r}])\nexcept SystemExit: pass\n"
        "print(*sys.modules, sep='\\n')"
    )
    first, *modules = python("-c", code).stdout.splitlines()
    assert first.endswith("problem.yaml: valid")
    assert "propopt.problems" in modules
    unused = {"matplotlib", "PIL", "cvxpy", "shap", "lime", "torch", "propopt.plots"}
    assert not unused & set(modules)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom propopt.cli import main\n"
        "try: main(['sweep', '--help'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, sep='\\n')"
    )
    run = python("-c", code)
    assert run.returncode == 0
    assert "--solver NAME" in run.stdout
    assert not set(HEAVY) & set(run.stdout.split())

"""The examples run, and warn of nothing."""

import runpy
from pathlib import Path

import pytest


FOLDER = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.py")))
def test_example_runs(name, capsys):
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert capsys.readouterr().out

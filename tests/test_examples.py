"""The examples run, and warn of nothing."""

import runpy
from pathlib import Path

import pytest


FOLDER = Path(__file__).parent.parent / "examples"
NEEDS = {"digits_cnn.py": "torch"}


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.py")))
def test_example_runs(name, capsys, monkeypatch, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)  # some write a picture
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert capsys.readouterr().out

"""The tool that draws mutants: what it changes, and what it says of a small project."""

import importlib.util
import re
from pathlib import Path

import pytest


SCRIPT = Path(__file__).parent.parent / "tools" / "mutants.py"
if not SCRIPT.is_file():
    pytest.skip("needs a checkout", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("mutants", SCRIPT)
mutants = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutants)


SOURCE = '''"""A module."""


def inverse(x, least=0):
    """1 / x, and nothing for small ones: é."""
    if x <= least:
        raise ValueError(f"{x + 1} is small")
    return 1 / x


def unused(x):
    return -x
'''
TEST = """
import pytest
from propopt.room.inverse import inverse

def test_values():
    assert inverse(2) == 0.5
    with pytest.raises(ValueError):
        inverse(-1)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, text in {"propopt": SOURCE, "tests": TEST}.items():
        file = "inverse.py" if name == "propopt" else "test_inverse.py"
        (tmp_path / name / "room").mkdir(parents=True)
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "room" / file).write_text(text, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--turn')\n"
    )
    judged = "Judged.\n\npropopt/room/inverse.py: 1 / x -> (1 * x)\n    for the test\n"
    (tmp_path / "mutants.txt").write_text(judged)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "JUDGED", tmp_path / "mutants.txt")
    return tmp_path / "propopt" / "room" / "inverse.py"


def test_each_mutant_of_a_project_gets_its_verdict(project, monkeypatch, capsys):
    drawn = {
        x.key.split(": ")[1]: x
        for own in mutants.mutants_of(project).values()
        for x in own
    }
    wanted = ["x <= least -> (x < least)", "x <= least -> (x > least)", "1 / x -> None"]
    wanted += ["1 / x -> (1 * x)", "-x -> (x)", "0 -> (1)"]
    monkeypatch.setattr(mutants, "draw", lambda *_: [drawn[key] for key in wanted])
    monkeypatch.setattr("sys.argv", ["mutants.py", "--jobs", "2"])
    mutants.main()
    told = capsys.readouterr().out
    verdicts = re.findall(r"^(\w+).* line \d+ of \S+ (.* -> .*)$", told, re.MULTILINE)
    assert {change: result for result, change in verdicts} == {
        wanted[0]: "survived",
        wanted[1]: "killed",
        wanted[2]: "killed",
        wanted[3]: "equivalent",
        wanted[4]: "not",
        wanted[5]: "survived",
    }
    assert "40 % of 5 are killed" in told

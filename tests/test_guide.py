"""Pages of the guide print what they show, where the build cannot run them.

The build runs `{code-cell}` blocks. Blocks of `python` are run here, in the environment
that has their packages; a block of `text` behind one is what it prints. Pages that show
parts of an example are held by `test_examples.py`, which runs it.
"""

import ast
import re
import warnings
from pathlib import Path

import pytest


FOLDER = Path(__file__).parents[1] / "docs" / "guide"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = {
    path.name: found
    for path in sorted(FOLDER.glob("*.md"))
    if (found := BLOCK.findall(path.read_text(encoding="utf-8")))
}
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs a checkout")


BY_SECTION = ("clusters.md",)
"""Pages with sections for packages that are seldom installed together."""


def blocks_of():
    """By page the blocks; by page and section those before all sections, and its."""
    for name, blocks in BLOCKS.items():
        if name not in BY_SECTION:
            yield pytest.param(blocks, id=name)
            continue
        text = (FOLDER / name).read_text(encoding="utf-8")
        before, *sections = re.split("^## ", text, flags=re.MULTILINE)
        for section in sections:
            if found := BLOCK.findall(section):
                title = section.partition("\n")[0]
                blocks = [*BLOCK.findall(before), *found]
                yield pytest.param(blocks, id=f"{name}: {title}")


def packages(code):
    """The packages that a program imports."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module.partition(".")[0]


@pytest.mark.filterwarnings("ignore")  # those of other packages
@pytest.mark.parametrize("blocks", [*blocks_of()])
def test_programs_of_a_page_print_what_it_shows(blocks, capsys, monkeypatch, tmp_path):
    program = "".join(text for kind, text in blocks if kind == "python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in sorted(set(packages(program))):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    printed, names = "", {"__name__": "__main__"}  # workers get its functions whole
    for kind, text in blocks:
        if kind == "text":
            assert printed.strip() == text.strip()
            continue
        exec(compile(text, text[:30], "exec"), names)
        printed = capsys.readouterr().out


def test_no_page_has_python_that_neither_the_build_nor_a_test_runs():
    """A page that runs cells keeps its own: few packages are not there for it."""
    absent = {"torch", "captum", "quantus", "mlflow"}
    for page, blocks in BLOCKS.items():
        text = (FOLDER / page).read_text(encoding="utf-8")
        if "{code-cell}" in text:
            program = "".join(text for kind, text in blocks if kind == "python")
            assert absent & {*packages(program)}, page

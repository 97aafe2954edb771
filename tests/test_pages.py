"""Pages name what is there, by one name and one letter each."""

import dataclasses
import importlib.util
import inspect
import re
from functools import partial
from pathlib import Path

import pytest

import propopt as po


ROOT = Path(__file__).parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
read = partial(Path.read_text, encoding="utf-8")
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs a checkout")


def section(title):
    return read(PAGE).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def named(text):
    return re.findall("`([^`\n]+)`", text.replace("```", ""))


def modules(path):
    """The files of a path as the page has it: a module, or all that a folder has."""
    name = path.partition("<")[0].rstrip("/")  # papers/<paper>/ stands for any
    for place in (ROOT / "propopt" / name, ROOT / name):
        if place.is_dir():
            return sorted(place.rglob("*.py"))
        if (file := place.with_suffix(place.suffix or ".py")).is_file():
            return [file]
    return []


def test_every_path_exists():
    paths = [path for path in named(read(PAGE)) if "/" in path]
    assert len(paths) > 70
    assert [path for path in paths if not modules(path)] == []


def test_every_noun_is_a_class_of_its_place():
    rows = [row.split("|") for row in section("Nouns").splitlines() if "`" in row]
    assert len(rows) > 10
    for _, nouns, *_, where, _ in rows:
        classes = named(nouns)
        texts = ["".join(map(read, modules(place))) for place in named(where)]
        if len(texts) != len(classes):  # not a place for each
            texts = ["".join(texts)] * len(classes)
        for name, text in zip(classes, texts, strict=True):
            assert re.search(rf"^class {name}\b", text, re.MULTILINE), (name, where)


def test_no_walk_names_a_file_twice():
    walks = [part for part in section("Five walks").split("\n\n") if "**" in part]
    assert len(walks) == 5
    for walk in walks:
        files = [modules(path) for path in named(walk) if "/" in path]
        assert len({*map(str, files)}) == len(files) > 6, walk


# ---- notation: one thing of each letter, and one name is one thing
NOTATION = ROOT / "docs" / "background" / "notation.md"
SYMBOLS, _, RESULTS = read(NOTATION).partition("## Results")


def cells(text):
    """Of the table in a text: the head, and the rows."""
    lines = [line for line in text.splitlines() if line[:1] == "|"]
    head, _, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    return head, rows


def test_each_row_has_a_symbol_of_its_own_a_meaning_a_shape_and_a_place():
    root, (_, rows) = ROOT / "propopt", cells(SYMBOLS)
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 4
        symbols, meaning, _, where = row
        assert symbols
        assert meaning
        assert where
        for place in where.replace("everywhere", "").replace("`", "").split(", "):
            path = root / place.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), place
    symbols = [symbol for row in rows for symbol in row[0].split(", ")]
    assert len(symbols) == len(set(symbols))


CLASSES = {
    "Explanation": po.results.Explanation,
    "LimeExplanation": po.lime.LimeExplanation,
    "InteractionScores": po.interactions.InteractionScores,
}
"""Columns of the table."""


@pytest.mark.parametrize("name", CLASSES)
def test_names_of_results_are_those_of_the_class_and_its_docstrings(name):
    cls, (head, rows) = CLASSES[name], cells(RESULTS)
    known = {field.name for field in dataclasses.fields(cls)} | set(dir(cls))
    parameters = cls.__doc__.split("Parameters\n")[1]
    assert len(rows) == 5
    for line in rows:
        row = dict(zip([c.strip("`") for c in head], line, strict=True))
        named = re.fullmatch(r"(\w+)(?:\((\w+)\))?", row["name"].strip("`"))
        called, parameter = named.groups()
        assert (called in known) is (row[name] == "✓"), called
        if parameter is not None and called in known:
            first = list(inspect.signature(getattr(cls, called)).parameters)[1]
            assert first == parameter
        if row[name] == "✓":
            own = getattr(getattr(cls, called, None), "__doc__", None)
            assert own or f"{called} :" in parameters, called


# ---- keys of problem files
def test_the_page_of_keys_is_the_one_that_the_schema_gives():
    path = ROOT / "docs" / "_ext" / "problem_keys.py"
    spec = importlib.util.spec_from_file_location("problem_keys", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = read(module.PAGE)
    assert text == module.page(), "run: python docs/_ext/problem_keys.py"
    assert "`model.task` may be left out" in text
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    schema = po.problems.file.ProblemSchema.model_json_schema()
    sections = [schema, *schema["$defs"].values()]
    keys = [key for one in sections for key in one.get("properties", ())]
    assert sorted(rows) == sorted(keys)


# ---- the front page of the repository
README = ROOT / "README.md"


def test_what_the_readme_has_in_python_runs():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", read(README), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["best"].gap < 1e-9
    assert names["explainer"].shap_values(names["X"][:2]).shape == (2, 10)
    # the card of the first screen; other versions round differently, so without digits
    (card,) = re.findall(r"```text\n(.*?)\n```", read(README), re.DOTALL)
    lines = [re.sub(r"[\d.]+|\s+", "", text) for text in (card, str(names["best"]))]
    assert lines[0] == lines[1]
    assert len(names["curve"].to_frame()) == 3


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = read(README)
    assert len(text.splitlines()) < 155  # the card among them
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []

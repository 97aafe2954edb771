"""The reference has every public name once, and links that are there."""

import importlib.util
import inspect
import pydoc
import re
import sys
import typing
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import propopt as po
from propopt.base import errors


ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"
pytestmark = pytest.mark.skipif(not PAGES.is_dir(), reason="needs a checkout")


def module_of(*path: str):
    """A program of the docs, which is in no package."""
    place = PAGES.parent.joinpath(*path)
    spec = importlib.util.spec_from_file_location(place.stem, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.append(str(PAGES.parent / "_ext"))  # as Sphinx has it
REFERENCE = module_of("_ext", "reference.py") if PAGES.is_dir() else None
TABLES = REFERENCE.TABLES if REFERENCE else {}
GROUPS = REFERENCE.GROUPS if REFERENCE else {}
PLACES = sorted({place for table in TABLES.values() for place in table})
THINGS = {place: REFERENCE.located(place) for place in PLACES}


def names_of(namespace) -> list[str]:
    if namespace is errors:
        return [name for name, kind in vars(errors).items() if inspect.isclass(kind)]
    return list(namespace.__all__)


def is_namespace(name: str) -> bool:
    return inspect.ismodule(getattr(po, name))


NAMESPACES = [name for name in (*dir(po), "errors") if is_namespace(name)]
FLAT = [name for name in dir(po) if name[0] != "_" and not is_namespace(name)]


def test_every_flat_name_is_on_the_first_page_once():
    assert sorted(TABLES["index"]) == sorted(f"propopt.{name}" for name in FLAT)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_name_of_a_namespace_is_on_its_page_once(namespace):
    module = getattr(po, namespace)
    table = [place.rpartition(".")[2] for place in TABLES[namespace]]
    assert sorted(table) == sorted(names_of(module))
    for place in TABLES[namespace]:
        assert THINGS[place] is getattr(module, place.rpartition(".")[2]), place


def test_every_page_is_of_a_namespace_and_in_the_navigation():
    assert sorted(TABLES) == sorted([*NAMESPACES, "index", "objects"])
    text = (PAGES / "index.md").read_text("utf-8")
    shown = re.findall(r"^.+ <(\w+)>$", text, re.MULTILINE)
    linked = re.findall(r"\]\((\w+)\.md\)", text)
    assert sorted(shown) == sorted(linked) == sorted([*NAMESPACES, "objects"])


def test_every_object_has_one_page():
    assert [place for place, thing in THINGS.items() if thing is None] == []
    pages = Counter(id(thing) for thing in THINGS.values())
    assert [place for place in PLACES if pages[id(THINGS[place])] > 1] == []


def classes_in(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)


def hints_of(thing: object) -> Iterator[object]:
    members = {"__init__": thing}
    if isinstance(thing, type):
        members |= dict(inspect.getmembers_static(thing))
        members["fields"] = thing
    for name, member in members.items():
        if name.startswith("_") and name != "__init__":
            continue
        made = getattr(member, "fget", None) or getattr(member, "__func__", member)
        try:
            hints = typing.get_type_hints(made)
        except (TypeError, NameError):  # names of packages that are not imported
            continue
        yield from (hint for part, hint in hints.items() if part[0] != "_")


def test_classes_that_signatures_name_have_a_page():
    pages = {id(thing) for thing in THINGS.values()}
    public = [
        thing for place, thing in THINGS.items() if place not in TABLES["objects"]
    ]
    without = {
        kind.__qualname__: thing
        for thing in public
        for hint in hints_of(thing)
        for kind in classes_in(hint)
        if kind.__module__.startswith("propopt.") and id(kind) not in pages
    }
    assert without == {}


def test_first_lines_stand_in_the_tables_as_a_sentence():
    for place, thing in THINGS.items():
        if inspect.isclass(thing) or inspect.isfunction(thing):
            line = (inspect.getdoc(thing) or "").partition("\n")[0]
            assert line.endswith((".", "?")), place
            assert re.search(r"Eq\.|\.\.\.", line) is None, place


def parameters_of(place: str) -> list[str]:
    sections = REFERENCE.sections_of(inspect.getdoc(THINGS[place]) or "")
    entries = re.findall(r"^(\S.*?)(?: : .*)?$", sections.get("Parameters", ""), re.M)
    return [name for entry in entries for name in entry.split(", ")]


@pytest.mark.parametrize("place", PLACES)
def test_more_than_eight_parameters_are_in_groups(place):
    names = parameters_of(place)
    groups = [
        name for group in GROUPS.get(place, {}).values() for name in group.split()
    ]
    assert (len(names) > 8) is (place in GROUPS)
    assert sorted(groups) == (sorted(names) if len(names) > 8 else [])


def test_a_page_has_its_example_before_its_parameters_and_its_details_last():
    text = REFERENCE.arranged(
        "One line.\n\nOne paragraph.\n\nDetails.\n\nParameters\n----------\nx : int\n"
        "    A number.\n\nExamples\n--------\n>>> 1\n1\n\nSee Also\n--------\ny"
    )
    parts = "One line", "One par", "Example", ">>> 1", "Parameters", "See", "Details"
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize("name", FLAT)
def test_help_is_read_in_a_terminal(name):
    about = inspect.getdoc(getattr(po, name))
    assert max(map(len, about.splitlines())) <= 88
    assert re.search(r"\\[a-z]+|:math:", about) is None  # no LaTeX


def test_inventories_are_those_of_their_table_and_their_names_exist():
    written = module_of("inventories", "write.py")
    for project, links in written.LINKS.items():
        path = ROOT / "docs" / "inventories" / f"{project}.inv"
        content = path.read_bytes()
        assert content == written.inventory(project)
        rows = zlib.decompress(content.split(b"zlib.\n", 1)[1]).decode().splitlines()
        addresses = [row.split()[3] for row in rows]
        names = sorted(name for _, name in links)
        assert sorted(address.partition("#")[2] for address in addresses) == names
        assert not any("$" in address for address in addresses)
        for kind, name in links:
            thing = pydoc.locate(name)
            assert isinstance(thing, type), name
            assert issubclass(thing, BaseException) is (kind == "exception"), name

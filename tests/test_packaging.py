"""What is published says one thing in all places: versions, requirements, names."""

import re
import tomllib
from pathlib import Path

import jinja2
import yaml

import propopt as po


ROOT = Path(__file__).parents[1]
META = ("recipe", "meta.yaml")


def read(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


def recipe():
    written = jinja2.Environment(undefined=jinja2.StrictUndefined)
    tools = {"compiler": "compiler_{}".format, "stdlib": "stdlib_{}".format}
    text = written.from_string(read(*META)).render(PYTHON="python", **tools)
    return yaml.safe_load(text)


def test_the_version_is_the_same_wherever_it_is_written():
    changes = re.search(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)
    assert {
        project()["version"],
        yaml.safe_load(read("CITATION.cff"))["version"],
        recipe()["package"]["version"],
        changes.group(1),
    } == {po.__version__}


def test_fragments_of_the_changelog_have_a_kind_and_a_place_to_go():
    settings = tomllib.loads(read("pyproject.toml"))["tool"]["towncrier"]
    kinds = [kind["directory"] for kind in settings["type"]]
    name = re.compile(rf"\+[\w-]+\.({'|'.join(kinds)})\.md")
    files = {path.name for path in ROOT.joinpath(settings["directory"]).iterdir()}
    assert "README.md" in files
    assert [file for file in files - {"README.md"} if not name.fullmatch(file)] == []
    assert all(f"`{kind}`" in read("changelog.d", "README.md") for kind in kinds)
    head, found, releases = read("CHANGELOG.md").partition(
        "<!-- towncrier release notes start -->"
    )
    assert found
    assert "##" not in head
    assert releases.strip().startswith("## ")


# ---- the recipe of conda: what pyproject.toml says, in the form that linters ask for

CALLED = {"matplotlib": "matplotlib-base", "lazy-loader": "lazy_loader"}
"""Packages of conda-forge that have another name there."""


def asked(requirements):
    """The names and bounds of requirements, as conda writes them."""
    pairs = [re.fullmatch(r"([\w-]+) ?(.*)", r).groups() for r in requirements]
    return {CALLED.get(name, name.lower()): bounds for name, bounds in pairs}


def test_the_recipe_asks_for_what_the_project_does():
    made, told = recipe(), project()
    needed = {"python": told["requires-python"], **asked(told["dependencies"])}
    assert asked(made["requirements"]["run"]) == needed
    host = asked(made["requirements"]["host"])
    build = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert host == {"python": "", "pip": "", **asked(build)}
    assert made["requirements"]["build"] == ["compiler_c", "stdlib_c"]
    assert made["package"]["name"] == told["name"]
    about = made["about"]
    assert about["license"] == told["license"]
    assert [about["license_file"]] == told["license-files"]
    assert about["summary"] == told["description"]
    scripts = [f"{name} = {place}" for name, place in told["scripts"].items()]
    assert made["build"]["entry_points"] == scripts
    assert f"{{{{ PYTHON }}}} -m pip install {made['source']['path'][1:]}" in read(
        *META
    )

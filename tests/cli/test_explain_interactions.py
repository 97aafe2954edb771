"""``explain: {interactions: FILE}``: what matters jointly, beside an explanation."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import write
from interaction_scores import made_up_scores

import propopt as po
from propopt.cli import main
from propopt.problems.subject.subject import Subject


LOOK = """\
data: {sklearn: iris, explain: 30}
model: {kind: logistic, target_class: setosa}
explain:
  interactions: found/scores.npz
"""
IRIS = (
    "sepal length (cm)",
    "sepal width (cm)",
    "petal length (cm)",
    "petal width (cm)",
)


def scores(**fields):
    """Of the columns of iris, of which the last two clearly matter jointly."""
    estimates = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 9.0])
    own = {"names": IRIS, "estimates": estimates, **fields}
    return made_up_scores(np.random.default_rng(0), len(own["names"]), **own)


@pytest.fixture
def look(tmp_path):
    (tmp_path / "found").mkdir()
    scores().save(tmp_path / "found" / "scores.npz")
    return write(tmp_path, "look", LOOK)


def explain(*arguments):
    return main(["explain", *map(str, arguments)])


@pytest.mark.parametrize("settings", ["robustness: 0.5", "reference: 40"])
def test_a_sentence_names_what_matters_jointly(tmp_path, look, out, capsys, settings):
    write(tmp_path, "look", LOOK + f"  {settings}\n")
    assert main(["check", look]) == 0
    assert explain(look, "-o", out) == 0
    told = "petal length (cm) × petal width (cm) (9) matter jointly, which no additive"
    assert told in capsys.readouterr().out
    stored = json.loads((out / "look.json").read_text())
    saved = po.Explanation.load(out / "look.npz")
    assert told in saved.parameters["notes"]
    assert stored["picked"]["parameters"]["notes"] == saved.parameters["notes"]


def test_without_the_file_nothing_is_said_and_numbers_are_the_same(tmp_path, look, out):
    assert explain(look, "-o", out, "-q") == 0
    plain = write(tmp_path, "plain", LOOK.replace("found/scores.npz", "null"))
    assert explain(plain, "-o", out, "-q") == 0
    one, other = (po.Explanation.load(out / f"{n}.npz") for n in ("look", "plain"))
    np.testing.assert_array_equal(one.attributions, other.attributions)
    assert "notes" not in other.parameters


def test_the_columns_of_a_group_are_one_feature(tmp_path, out, capsys, rng):
    lines = ["size,red,blue,age,y"]
    for size, red, age in zip(
        rng.normal(size=40), rng.integers(0, 2, 40), rng.normal(size=40), strict=True
    ):
        lines.append(f"{size},{red},{1 - red},{age},{size * red}")
    (tmp_path / "table.csv").write_text("\n".join(lines))
    group = ", groups: {colour: [red, blue]}"
    text = LOOK.replace("sklearn: iris", f"csv: table.csv, target: y{group}")
    path = write(
        tmp_path, "look", text.replace("logistic, target_class: setosa", "linear")
    )
    result = scores(
        names=("size", "colour", "age"),
        columns=(("size",), ("red", "blue"), ("age",)),
        estimates=np.array([9.0, 0.1, 0.1]),
    )
    (tmp_path / "found").mkdir()
    result.save(tmp_path / "found" / "scores.npz")
    assert explain(path, "-o", out) == 0
    assert "size × colour (9) matter jointly" in capsys.readouterr().out
    path = write(
        tmp_path, "look", (tmp_path / "look.yaml").read_text().replace(group, "")
    )
    assert explain(path, "-o", out) == 0  # of all its columns, too
    assert "size × colour (9) matter jointly" in capsys.readouterr().out


OTHERS = {
    "interactions: their columns": {"names": ("a", "b", "c", "d")},
    "interactions: expected scores of pairs or larger sets, got those of single": {
        "sets": np.arange(4)[:, None],
        "estimates": np.ones(4),
        "standard_errors": np.ones(4),
        "monte_carlo": np.ones(4),
        "counts": np.ones(4),
    },
}


@pytest.mark.parametrize("told", OTHERS)
@pytest.mark.parametrize("command", ["explain", "check"])
def test_scores_of_something_else_are_refused_before_anything_is_fitted(
    tmp_path, look, out, capsys, monkeypatch, told, command
):
    monkeypatch.setattr(Subject, "function", property(lambda _: pytest.fail("fitted")))
    scores(**OTHERS[told]).save(tmp_path / "found" / "scores.npz")
    output = ["-o", str(out)] if command == "explain" else []
    assert main([command, look, *output]) == 2
    place = f"{look}:4: explain.interactions: "
    assert capsys.readouterr().err.startswith(place + told)


FILES = {
    "nowhere.npz": "there is no file ",
    "look.yaml": "path: expected the ",
    "odd.npz": "",
    "..": "path: expected the name of a file, got ",
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_of_scores_is_refused(tmp_path, look, capsys, name):
    (tmp_path / "odd.npz").write_bytes(b"PK\x03\x04")
    write(tmp_path, "look", LOOK.replace("found/scores.npz", name))
    assert main(["check", look]) == 2
    place = f"{look}:4: explain.interactions: "
    assert capsys.readouterr().err.startswith(place + FILES[name])


def test_what_is_read_is_not_written_over(tmp_path, look, capsys):
    (tmp_path / "found" / "scores.npz").rename(tmp_path / "look.npz")
    write(tmp_path, "look", LOOK.replace("found/scores", "look"))
    assert explain(look, "-o", tmp_path) == 2
    assert "it is read here; choose another folder" in capsys.readouterr().err

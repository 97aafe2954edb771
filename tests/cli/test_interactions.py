"""``propopt interactions``: how much features matter jointly, in files and in print."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import write
from exact_csv import read_csv

import propopt as po
from propopt.cli import main


PATCHES = """\
data: {sklearn: diabetes}
model: {kind: linear}
interactions:
  scheme: {kind: minipatches, n_patches: 120, n_features: 4, columns: bernoulli}
seed: 3
"""
SPLIT = """\
data: {sklearn: iris}
model: {kind: logistic}
interactions:
  scheme: {kind: split, test_size: 0.4}
  sets: [[petal length (cm), petal width (cm)]]
"""


@pytest.fixture
def patches(tmp_path):
    return write(tmp_path, "patches", PATCHES)


def interactions(*arguments):
    return main(["interactions", *map(str, arguments)])


def fitted(path):
    """What the library finds, with the settings of the file."""
    subject = po.problems.read_problem(path).subject
    return po.interactions.ILOCO(
        subject.learner,
        po.interactions.Minipatches(n_patches=120, n_features=4, columns="bernoulli"),
        random_state=3,
    ).fit(subject.points, subject.target)


def test_files_hold_what_the_library_finds(patches, out):
    assert interactions(patches, "-o", out, "-q") == 0
    found = fitted(patches)
    pairs = read_csv(out / "patches_interactions.csv")
    np.testing.assert_array_equal(pairs["estimate"], found.result_.estimates)
    np.testing.assert_array_equal(pairs["se"], found.result_.standard_errors)
    assert pairs["feature_1"].tolist()[:2] == ["age", "age"]
    main_effects = read_csv(out / "patches_main_effects.csv")
    np.testing.assert_array_equal(
        main_effects["estimate"], found.main_effects_.estimates
    )
    stored = json.loads((out / "patches.json").read_text())
    assert stored["job"] == "interactions"
    assert stored["n_sets"] == stored["n_candidates"] == 45
    assert stored["settings"]["scheme"]["n_patches"] == 120


def test_how_well_it_predicts_is_told_beside_a_constant(patches, out):
    assert interactions(patches, "-o", out, "-q") == 0
    stored = json.loads((out / "patches.json").read_text())
    y = po.problems.read_problem(patches).subject.target
    np.testing.assert_allclose(stored["mean_error_of_a_constant"], np.var(y))
    nothing = np.zeros((1, 0), dtype=int)
    rows = fitted(patches).left_out_.errors(nothing).rows
    np.testing.assert_allclose(stored["mean_error"], rows.mean())


def test_of_classes_a_constant_answers_how_often_they_come(tmp_path, out):
    assert interactions(write(tmp_path, "split", SPLIT), "-o", out, "-q") == 0
    stored = json.loads((out / "split.json").read_text())
    np.testing.assert_allclose(stored["mean_error_of_a_constant"], 2 / 3)
    assert 0.0 < stored["mean_error"] < 0.2
    assert stored["n_sets"] == 1


def test_workers_change_no_number(patches, out):
    assert interactions(patches, "-o", out / "one", "-q") == 0
    assert interactions(patches, "-o", out / "two", "-q", "-j", 2) == 0
    one, two = (
        (out / part / "patches_interactions.csv").read_text() for part in ("one", "two")
    )
    assert one == two


def test_what_is_read_first(patches, out, capsys):
    assert interactions(patches, "-o", out) == 0
    printed = capsys.readouterr().out
    assert "442 rows × 10 columns" in printed
    assert "model: linear" in printed
    assert "iLOCO by minipatches, n_patches 120" in printed
    assert "squared error with all features: " in printed
    assert f"wrote {out}/patches_interactions.csv, _main_effects.csv" in printed


GROUPED = PATCHES.replace(
    "seed", "  groups: {lipids: [s1, s2, s3, s4], blood: [bp, s6]}\nseed"
)


def test_columns_of_a_group_are_one_feature(tmp_path, out):
    assert interactions(write(tmp_path, "grouped", GROUPED), "-o", out, "-q") == 0
    stored = json.loads((out / "grouped.json").read_text())
    assert stored["features"] == ["age", "sex", "bmi", "blood", "lipids", "s5"]


WRONG = {
    "data: {sklearn: diabetes}": {
        "data: {sklearn: diabetes, explain: 9}": "1: data.explain: has no effect: each",
        "data: {grid: {low: 0, high: 1, per_dimension: 9, dimensions: 2}}": (
            "1: a model learns from sklearn or csv, and data has a grid"
        ),
    },
    "model: {kind: linear}": {
        "function: {name: sine}": "2: function: a formula cannot be fitted without a",
        "model: {kind: linear, output: value}": "2: model.output: has no effect: predi",
        "model: {onnx: model.onnx}": "2: model: an ONNX model cannot be fitted again",
    },
    "n_patches: 120": {
        "n_patches: 1": "4: interactions.scheme.n_patches: expected a number >= 2, got",
        "rows: 1.5": "4: interactions.scheme.rows: expected a number < 1, got 1.5",
        "rows: many": "4: interactions.scheme.rows: expected how many rows, a share of",
        "test_size: 0.5": "4: interactions.scheme.test_size: unknown key; known here: ",
    },
    "kind: minipatches": {
        "kind: refits": "4: interactions.scheme.kind: expected 'minipatches' or 'split'"
    },
    "seed": {
        "  order: 11\nseed": "5: interactions.order: expected a number <= 8, got 11",
        "  order: 0\nseed": "5: interactions.order: expected a number >= 1, got 0",
        "  groups: {a: [bmj]}\nseed": "3: interactions: groups: 'a' has the column ",
        "  groups: {a: []}\nseed": "5: interactions.groups.a: expected at least one va",
        "  sets: pairs\nseed": "5: interactions.sets: expected all, or a list of sets",
        "  level: 90\nseed": "5: interactions.level: expected a number < 1, got 90",
        "  error: zero_one\nseed": "5: interactions.error: expected 'auto', 'squared'",
    },
}


@pytest.mark.parametrize(
    ("old", "new"), [(old, new) for old, news in WRONG.items() for new in news]
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path, capsys, old, new):
    path = write(tmp_path, "bad", PATCHES.replace(old, new))
    assert main(["check", path]) == 2
    assert capsys.readouterr().err.startswith(f"{path}:{WRONG[old][new]}")


def test_each_command_runs_its_own_job(patches, out, capsys):
    assert main(["sweep", patches, "-o", str(out)]) == 2
    complaint = f"{patches}:3: interactions: is run by propopt interactions\n"
    assert capsys.readouterr().err == complaint

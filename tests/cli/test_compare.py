"""``propopt compare``: two files, two archives, or a section that says so."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import names, write
from exact_csv import read_csv

import propopt as po
from propopt.cli import main


FILE = """\
data: {{csv: {name}.csv, target: y, explain: 40}}
model: {{kind: linear}}
explain: {{kind: contributions, robustness: {weight}}}
"""


@pytest.fixture
def two(tmp_path):
    """Two versions, in the second of which x0 has twice its effect."""
    rng = np.random.default_rng(0)
    for name, beta, weight in (("old", 1.0, 0.1), ("new", 2.0, 10.0)):
        X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["x0", "x1", "x2"])
        X["y"] = X @ [beta, 0.5, 0.0] + rng.normal(size=300)
        X.to_csv(tmp_path / f"{name}.csv", index=False)
        write(tmp_path, name, FILE.format(name=name, weight=weight))
    return tmp_path


def compare(*arguments):
    return main(["compare", *map(str, arguments)])


def loaded(folder, name="new"):
    return po.results.Comparison.load(folder / f"{name}_comparison.npz")


def test_two_files_are_compared_as_the_library_would(two, capsys):
    out = two / "out"
    assert compare(two / "old.yaml", two / "new.yaml", "-o", out) == 0
    kinds = ["csv", "npz", "svg"]
    assert names(out) == ["new.json", *(f"new_comparison.{kind}" for kind in kinds)]
    old, new = (po.problems.read_problem(two / f"{x}.yaml") for x in ("old", "new"))
    subject = old.subject
    level = [
        po.null_models.bootstrap_refits(
            x.estimator, x.others, x.others_target, times=20, rng=0
        )
        for x in (subject, new.subject)
    ]
    found = po.compare(
        subject.estimator,
        new.subject.estimator,
        subject.points,
        data=subject.others,
        level=level,
    )
    written = loaded(out)
    np.testing.assert_allclose(written.distances, found.distances, rtol=1e-12)
    np.testing.assert_allclose(written.times_level, found.times_level, rtol=1e-12)
    level = written.level
    np.testing.assert_allclose(level.before, found.level.before, rtol=1e-9)
    np.testing.assert_allclose(level.after, found.level.after, rtol=1e-9)
    assert (len(level.before), len(level.after)) == (20, 20)
    assert written.distance_flagged.tolist() == [True, False, False]
    manifest = json.loads((out / "new.json").read_text())
    assert manifest["level"] == "20 and 20 refits"
    assert manifest["distance_flagged"] == ["x0"]
    table = read_csv(out / "new_comparison.csv")
    np.testing.assert_array_equal(table["distance"], sorted(written.distances)[::-1])
    assert "<svg" in (out / "new_comparison.svg").read_text()
    assert compare(two / "old.yaml", two / "new.yaml", "-o", out, "--resume") == 0
    assert "already finished" in capsys.readouterr().out


def test_a_section_says_what_it_is_held_against(two, capsys):
    own = FILE.partition("explain:{{")[0].replace("explain: {{kind", "compare: {{kind")
    own = own.replace("robustness", "before: old.yaml, level: none, robustness")
    path = write(two, "both", own.format(name="new", weight=1))
    assert main(["check", path]) == 0
    assert compare(path, "-o", two / "out", "-q") == 0
    found = loaded(two / "out", "both")
    assert found.level is None
    manifest = json.loads((two / "out" / "both.json").read_text())
    assert not {"level", "distance_flagged", "base_flagged"} & {*manifest}
    assert found.parameters["robustness"] == 1.0
    bare = write(two, "bare", own.format(name="new", weight=1).replace("none", "all"))
    assert compare(bare, "-o", two / "out") == 2
    assert (
        "compare.level: expected 'auto' or 'none', got 'all'" in capsys.readouterr().err
    )


def test_categories_that_are_new_do_not_change_the_codes_of_others(two):
    """The city a of the old table is b's code in the new one, were it read anew."""
    for name, cities in (("old", "bc"), ("new", "abc")):
        table = pd.read_csv(two / f"{name}.csv")
        table["city"] = [cities[k % len(cities)] for k in range(300)]
        table["y"] += 3.0 * (table["city"] == "c")
        table.to_csv(two / f"{name}.csv", index=False)
        file = two / f"{name}.yaml"
        forest = "hist_gradient_boosting, task: regression, max_iter: 30"
        text = file.read_text().replace("linear", forest)
        file.write_text(text.replace("target: y", "target: y, categorical: [city]"))
    assert compare(two / "old.yaml", two / "new.yaml", "-o", two / "out", "-q") == 0
    found = loaded(two / "out")
    assert found.features[found.distances.argmax()] == "x0"
    assert len(found.level.before) == 20
    new = po.problems.read_problem(two / "new.yaml").subject.estimator
    rows = po.problems.read_problem(two / "old.yaml").subject
    base = new.predict(rows.others).mean()
    assert found.base_values[1] == pytest.approx(base, abs=0.2)  # of 100 rows
    f = new.predict(rows.points) - found.base_values[1]
    np.testing.assert_allclose(found.after.sum(axis=1), f, atol=1e-9)


MODELS = """\
import pandas as pd
from sklearn.linear_model import LinearRegression

def fitted(name):
    table = pd.read_csv(f"{folder}/{{name}}.csv")
    return LinearRegression().fit(table[["x0", "x1", "x2"]], table["y"])

old, new = fitted("old"), fitted("new")
other = new.predict
"""


def test_fitted_models_are_refitted_on_their_tables(two, monkeypatch):
    """A function without a learner cannot be refitted, so nothing is tested."""
    (two / "versions_to_compare.py").write_text(MODELS.format(folder=two))
    monkeypatch.syspath_prepend(two)
    text = {name: (two / f"{name}.yaml").read_text() for name in ("old", "new")}
    for name, model in (("old", "old"), ("new", "new"), ("new", "other")):
        imported = f"import: versions_to_compare:{model}"
        (two / f"{name}.yaml").write_text(text[name].replace("kind: linear", imported))
        if name == "new":
            files = (two / "old.yaml", two / "new.yaml", "-o", two / model)
            assert compare(*files, "-q", "--allow-code") == 0
    found = loaded(two / "new")
    assert len(found.level.after) == 20
    assert found.flagged.tolist() == [True, False, False]
    assert loaded(two / "other").level is None


def test_archives_of_two_weights_are_compared_at_their_targets(two, capsys):
    out = two / "out"
    new = (two / "new.yaml").read_text()
    new = new.replace("linear", "forest, task: regression").replace(
        "new.csv", "old.csv"
    )
    write(two, "new", new)
    files = [two / f"{name}.yaml" for name in ("old", "new")]
    assert main(["explain", *map(str, files), "-o", str(out), "-q"]) == 0
    both = (out / "old.npz", out / "new.npz", "-o", two / "both")
    assert compare(*both, "--report") == 0
    for shown in (capsys.readouterr().out, (two / "both/new.html").read_text()):
        assert "distance" in shown
        assert "× level" not in shown
    one, other = (
        po.results.Explanation.load(out / f"{name}.npz") for name in ("old", "new")
    )
    moved = other.contributions - one.contributions
    found = loaded(two / "both")
    np.testing.assert_allclose(found.distances, np.sqrt((moved**2).mean(axis=0)))
    assert found.sources == ("stored targets",) * 2
    assert compare(out / "old.npz", files[1]) == 2
    assert compare(out / "old.npz", out / "none.npz", "-o", two / "both") == 2
    assert capsys.readouterr().err.splitlines() == [
        "compare: expected two problem files, two .npz files, or one problem file with "
        "a section compare",
        f"there is no file {out / 'none.npz'}",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("x2", "z"), "after (the new version): X: the columns differ from those"),
        (("explain: 40", "explain: 40, standardize: true"), "both versions would get"),
        (("model: {kind: linear}", "model: {kind: pickled}"), "model.kind: expected"),
    ],
)
def test_a_file_that_does_not_fit_is_named(two, change, told, capsys):
    for name in ("new.csv", "new.yaml"):
        path = two / name
        path.write_text(path.read_text().replace(*change))
    assert compare(two / "old.yaml", two / "new.yaml", "-o", two / "out") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"{two / 'new.yaml'}:")
    assert told in error


def test_a_formula_has_no_level_and_says_so(tmp_path, capsys):
    text = "data: {uniform: {low: -1, high: 1, points: 20, dimensions: 2}}\n"
    one = write(tmp_path, "one", f"{text}function: {{name: sine}}\nexplain: {{}}\n")
    more = f"{text}function: {{name: power, degree: 3}}\n"
    both = write(tmp_path, "both", f"{more}compare: {{before: one.yaml}}\n")
    assert compare(both, "-o", tmp_path / "out") == 0
    assert "× level" not in capsys.readouterr().out
    lost = f"{more}compare: {{before: none.yaml, level: none}}\n"
    assert compare(write(tmp_path, "both", lost), "-o", tmp_path / "out") == 2
    assert "compare.before: there is no file none.yaml, " in capsys.readouterr().err
    assert one.endswith("one.yaml")

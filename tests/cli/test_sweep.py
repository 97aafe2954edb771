"""``propopt sweep``: what is written, of losses and attributions, and printed."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from command_line import FILE, names, sweep, swept, write
from exact_csv import read_csv

import propopt as po
from propopt.problems.jobs import sweep as kept
from propopt.solvers import Task


def test_a_sweep_writes_its_files_and_prints_front_and_excess(file, out, capsys):
    assert sweep(file, "--output", out) == 0
    assert names(out) == swept("cubic")
    methods = [*3 * ["optimized"], "gradient", *2 * ["smoothgrad"]]
    assert read_csv(out / "cubic.csv")["method"].tolist() == methods
    assert "<svg" in (out / "cubic.svg").read_text()
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[5] == po.TradeOffs.load(out / "cubic.npz").document().title
    facts = po.TradeOffs.load(out / "cubic.npz").document().facts
    assert facts["sampling error"].value == 0.0
    assert [line.split()[1:] for line in lines if "knee" in line] == [
        ["74%", "78%", "knee"]
    ]
    assert len(lines) <= 26
    assert lines[-2].startswith(f"wrote {out / 'cubic'}.csv, .svg, .npz, ")
    # tables and settings where they are asked for
    assert sweep(file, "--output", out, "--verbose") == 0
    long = capsys.readouterr().out
    assert "\nsolver: " in long
    assert long.count("smoothgrad") >= 2


AIMED = FILE.partition("sweep:")[0] + "aim: {shares: {pairwise_robustness: -50%}}\n"


def test_an_aim_is_picked_and_a_front_has_its_error(tmp_path, out, capsys):
    path = write(tmp_path, "aimed", f"{AIMED}error: 0.1\n")
    assert sweep(path, "--output", out) == 0
    table = read_csv(out / "aimed.csv")
    (error,) = set(table["front_error"])
    assert 0.0 < error <= 0.1
    assert table["removed.pairwise_robustness"].iloc[-1] == pytest.approx(0.5)
    assert len(table) > 4
    told = json.loads((out / "aimed.json").read_text())
    words = "pairwise_robustness 50 % smaller"
    assert (told["aim"], told["front_error"]) == (words, error)
    printed = capsys.readouterr().out
    assert re.search(rf"front error +{100 * error:.2g}% \(proved\)", printed)
    front = po.TradeOffs.load(out / "aimed.npz")
    assert front.error == error
    best = front.aimed
    assert front.document().settings["aim"] == words
    picked = read_csv(out / "aimed_attributions.csv").iloc[:, -1:].to_numpy()
    np.testing.assert_allclose(picked, best.attributions, rtol=1e-9)


AIMS = {
    "knee": "the knee of the exact front",
    "{order: [gradient_matching], within: 0.1}": "first gradient_matching, each to 10 "
    "% of its range",
}


@pytest.mark.parametrize(("asked", "words"), AIMS.items())
def test_an_aim_is_all_where_nothing_is_swept(tmp_path, out, asked, words):
    text = AIMED.replace("{shares: {pairwise_robustness: -50%}}", asked)
    assert sweep(write(tmp_path, "aimed", text), "--output", out) == 0
    (best,) = po.TradeOffs.load(out / "aimed.npz").optimized
    assert best.parameters["aim"] == words
    assert json.loads((out / "aimed.json").read_text())["aim"] == words


@pytest.mark.parametrize("columns", ["40", "80"])
def test_nothing_is_cut_off_in_a_narrow_terminal(
    tmp_path, out, capsys, monkeypatch, columns
):
    monkeypatch.setenv("COLUMNS", columns)
    losses = "max_difference_robustness: {graph: {kind: chain}}\n  sparsity: 1\n"
    text = FILE.replace("sweep:", f"  {losses}sweep:\n  sparsity: [1, 2]")
    sweep(write(tmp_path, "cubic", text), "--output", out, "--verbose")
    printed = capsys.readouterr().out
    assert "…" not in printed
    for name in ("sparsity", "max_difference_robustness"):
        assert f"  loss {name}" in printed
    assert "smoothgrad scale=0.25 " in printed


def test_quiet_prints_nothing_and_the_solver_of_the_command_line_wins(
    file, out, capsys, monkeypatch
):
    used = []
    explain = Task.explain

    def noting(task, *arguments):
        used.append(task.chosen.name)
        return explain(task, *arguments)

    monkeypatch.setattr(Task, "explain", noting)
    assert sweep(file, "-o", out, "--quiet", "--solver", "clarabel") == 0
    assert set(used) == {"CLARABEL"}
    assert capsys.readouterr() == ("", "")


# ---- attributions: the front, and one table with names
IRIS = """\
data: {sklearn: iris, explain: 20}
model: {kind: logistic, target_class: setosa}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 3}}
sweep:
  pairwise_robustness: {low: 1e-3, high: 1e3, points: 13}
baselines:
  - {method: gradient}
  - {method: lime, scale: [9], n_samples: 40}
"""


@pytest.fixture
def curve(tmp_path):
    path = write(tmp_path, "iris", IRIS)
    return po.problems.read_problem(path)


def manifest(out, name="iris"):
    return json.loads((out / f"{name}.json").read_text())


def read(out, name="iris"):
    return read_csv(out / f"{name}_attributions.csv", index_col=0)


def test_the_front_is_saved_and_the_table_is_that_of_the_knee(curve, out, capsys):
    solved = curve.run(out)
    curve = curve.build()
    front, saved = solved.front(), po.TradeOffs.load(out / "iris.npz")
    assert len(saved.baselines) < len(solved.baselines) == 2
    for mine, same in zip(front.explanations, saved.explanations, strict=True):
        np.testing.assert_array_equal(mine.attributions, same.attributions)
    assert read_csv(out / "iris.csv")["on_front"].sum() == len(saved.explanations)
    knee = solved.knee(*curve.axes)
    said = capsys.readouterr().out
    assert f"\n{knee}\n" in said
    assert f"\n{solved}\n" in said
    pd.testing.assert_frame_equal(read(out), knee.to_frame(), check_exact=True)
    assert list(read(out)) == list(curve.points)
    stored = manifest(out)
    assert stored["picked"]["weights"] == knee.weights
    assert stored["left_out"] == []
    # reading attributions moves last digits: the losses do not depend on it
    again = curve.sweep(curve.baselines())
    again.prove()
    again.to_csv(out / "again.csv")
    tables = [pd.read_csv(out / f"{f}.csv", dtype=str) for f in ("iris", "again")]
    pd.testing.assert_frame_equal(*(t.drop(columns="seconds") for t in tables))


LARGE = "attributions of the front are not written (.npz): "
NONE_ASKED = "attributions are not written: `attributions: none`"


@pytest.mark.parametrize(
    ("asked", "limits", "suffixes", "said"),
    [
        ("", (8, 9), [".csv", ".json", ".svg", "_attributions.csv"], LARGE),
        ("attributions: all\n", (1, 1), None, ""),
        ("attributions: none\n", (99, 99), [".csv", ".json", ".svg"], NONE_ASKED),
    ],
)
def test_what_is_very_large_is_written_where_it_is_asked_for(
    tmp_path, out, capsys, monkeypatch, asked, limits, suffixes, said
):
    for name, most in zip(("FRONT", "TABLE"), limits, strict=True):
        monkeypatch.setattr(kept, f"_MOST_OF_A_{name}", most)
    sweep(write(tmp_path, "cubic", FILE + asked), "-o", out)
    assert names(out) == ([f"cubic{x}" for x in suffixes] if said else swept("cubic"))
    left_out = manifest(out, "cubic")["left_out"]
    assert len(left_out) == bool(said)
    printed = capsys.readouterr().out.replace("\n", " ")
    assert all(own.startswith(said) and own in printed for own in left_out)


@pytest.mark.parametrize(("most", "count"), [(10**7, 5), (10, 1)])
def test_of_large_tables_only_the_written_optimum_is_computed(
    curve, out, monkeypatch, most, count
):
    monkeypatch.setattr(kept, "_MOST_PROVED", most)
    monkeypatch.setattr(kept, "_MOST_OF_A_FRONT", 10)
    solved = curve.run(out)
    computed = [x for x in solved.optimized if not x.is_lazy("attributions")]
    assert len(computed) in (count, count + 1)  # the knee may be among the five
    assert not solved.knee(*curve.build().axes).is_lazy("attributions")


@pytest.mark.parametrize(
    ("method", "left_out"), [("save", ["attributions: interrupted"]), ("prove", [])]
)
def test_stopped_while_attributions_are_computed_the_losses_stay(
    curve, out, monkeypatch, method, left_out
):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(po.TradeOffs, method, stop)
    with pytest.raises(KeyboardInterrupt):
        curve.run(out, quiet=True)
    assert {"iris.csv", "iris.json", "iris.svg"} <= set(names(out))
    assert len(read_csv(out / "iris.csv")) == 15
    assert manifest(out)["left_out"] == left_out

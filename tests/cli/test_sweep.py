"""``propopt sweep``: what is written, and what is printed where."""

from __future__ import annotations

import pytest
from command_line import FILE, names, sweep, swept, write
from exact_csv import read_csv

import propopt as po
from propopt.solvers import Task


def test_sweep_writes_a_table_and_a_plot(file, out, capsys):
    assert sweep(file, "--output", out) == 0
    assert names(out) == swept("cubic")
    table = read_csv(out / "cubic.csv")
    assert table["method"].tolist() == [
        *3 * ["optimized"],
        "gradient",
        *2 * ["smoothgrad"],
    ]
    assert "<svg" in (out / "cubic.svg").read_text()
    assert capsys.readouterr().err == ""


def test_sweep_prints_the_front_and_the_excess_of_baselines(file, out, capsys):
    sweep(file, "--output", out)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"cubic ({file})"
    assert lines[1] == "9 points × 1 features, exact gradients, 3 baseline explanations"
    assert lines[2] == "explained: prediction of Power"
    curve = po.TradeOffs.load(out / "cubic.npz")
    title = curve.card().title.replace("1 others", "3 others")  # on the front
    assert (
        lines[4]
        == title
        == "Explanations of the prediction of Power: " + ("3 optimized, 3 others")
    )
    front = [line.split()[0] for line in lines[7:13]]
    assert front == 3 * ["optimized"] + ["gradient", "smoothgrad", "smoothgrad"]
    start = next(n for n, line in enumerate(lines) if line.startswith("Baselines: "))
    assert "target exact" in lines[start - 2]
    rows = [line.split() for line in lines[start + 2 : start + 5]]
    assert [row[0] for row in rows] == ["gradient", "smoothgrad", "smoothgrad"]
    assert [row[1] for row in rows[1:]] == ["scale=0.25", "scale=0.5"]
    assert all(row[-1].endswith("%") for row in rows)
    assert lines[-2].startswith(f"wrote {out / 'cubic'}.csv, .svg, .npz, ")


TABLE = """
name: patients
data: {sklearn: diabetes, explain: 40, standardize: true}
model: {kind: mlp, hidden: [8], regularization: 10}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 5}}
sweep: {pairwise_robustness: {low: 1e-3, high: 10, points: 9}}
baselines:
  - {method: gradient}
  - {method: smoothgrad, scale: [0.5, 1], n_samples: 50}
"""


def test_a_sweep_ends_with_what_was_found_at_the_knee(tmp_path, out, capsys):
    sweep(write(tmp_path, "patients", TABLE), "--output", out)
    lines = capsys.readouterr().out.splitlines()
    table = read_csv(out / "patients.csv")
    optima, others = table[table["gap"].notna()], table[table["gap"].isna()]
    names = ["loss.gradient_matching", "loss.pairwise_robustness"]
    losses = optima[names]
    scaled = (losses - losses.min()) / (losses.max() - losses.min())
    knee = optima.iloc[scaled.sum(axis=1).argmin()]
    weights = [1.0, knee["weight.pairwise_robustness"]]
    excess = others[names] @ weights / (knee[names] @ weights) - 1.0
    nearest = others.loc[excess.idxmin()]
    name = nearest["method"]
    if name == "smoothgrad":
        name += f" scale={nearest['parameter.scale']:.4g}"
    removed = knee["removed.pairwise_robustness"]
    [result] = [line for line in lines if line.startswith("At the knee: ")]
    assert result == (
        f"At the knee: {100 * knee['kept']:.0f} % as faithful, squared differences "
        f"between neighbours {100 * removed:.0f} % smaller; nearest baseline for "
        f"these weights: {name}, "
        f"{100 * excess.min():.2g} % above the best possible"
    )
    W = read_csv(out / "patients_attributions.csv", index_col=0)
    first, second, third, *_ = W.abs().mean().sort_values(ascending=False).index
    card = lines.index(
        f"{first}, {second} and {third} matter most to the predicted disease "
        "progression, by MLPRegressor, over 40 rows"
    )
    assert lines[card + 2].split()[:2] == [first, f"{W[first].mean():+.3g}"]
    assert lines.index(result) > card > max(lines.index(lines[4]), 20)


@pytest.mark.parametrize("columns", ["40", "80"])
def test_nothing_is_cut_off_in_a_narrow_terminal(
    tmp_path, out, capsys, monkeypatch, columns
):
    monkeypatch.setenv("COLUMNS", columns)
    losses = "max_difference_robustness: {graph: {kind: chain}}\n  sparsity: 1\n"
    text = FILE.replace("sweep:", f"  {losses}sweep:\n  sparsity: [1, 2]")
    sweep(write(tmp_path, "cubic", text), "--output", out)
    printed = capsys.readouterr().out
    assert "…" not in printed
    table = read_csv(out / "cubic.csv")
    for name in ("sparsity", "max_difference_robustness"):
        for value in table[table["on_front"]][f"loss.{name}"]:
            assert f" {value:.6g} " in printed
    assert "smoothgrad scale=0.25 " in printed


def test_markup_in_names_is_printed_as_it_is(tmp_path, out, capsys):
    folder = tmp_path / "[red]"
    folder.mkdir()
    assert sweep(write(folder, "cubic", FILE), "--output", out / "[b]") == 0
    printed = capsys.readouterr().out
    assert "[red]/cubic.yaml" in printed
    assert "[b]/cubic.csv" in printed


def test_quiet_prints_nothing(file, out, capsys):
    assert sweep(file, "--output", out, "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert names(out) == swept("cubic")


def test_solver_of_the_command_line_wins(file, out, monkeypatch):
    used = []
    explain = Task.explain

    def noting(task, *arguments):
        used.append(task.chosen.name)
        return explain(task, *arguments)

    monkeypatch.setattr(Task, "explain", noting)
    assert sweep(file, "-o", out, "-q", "--solver", "clarabel") == 0
    assert set(used) == {"CLARABEL"}


def test_several_files(tmp_path, out):
    files = [write(tmp_path, name, FILE) for name in ("a", "b")]
    assert sweep(*files, "-o", out, "-q") == 0
    assert names(out) == swept("a", "b")


def test_run_problem_returns_the_trade_offs(file, out):
    curve = po.problems.run_problem(
        po.problems.read_problem(file).build(), out, quiet=True
    )
    assert len(curve.optimized) == 3
    assert len(curve.baselines) == 3

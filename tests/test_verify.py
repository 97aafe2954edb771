"""``tools/verify.py``: honest results pass, and each of the forged ones is refused.

A forger changes one thing, and makes all digests anew.
"""

import contextlib
import csv
import hashlib
import importlib.util
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from refusals import refusals

import propopt as po
from propopt.cli import main


_FILE = Path(__file__).parents[1] / "tools" / "verify.py"
_SPEC = importlib.util.spec_from_file_location("verify", _FILE)
checker = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(checker)


# ---- Honest results


DATA = "data: {csv: table.csv, target: y, explain: 24}\n"
FOREST = DATA + "model: {kind: hist_gradient_boosting, task: regression}\n"
NEAR = "robustness: knee, graph: {kind: knn, n_neighbors: 8}"
ROBUST = "pairwise_robustness: {weight: 1, graph: {kind: knn, n_neighbors: 4}}"
SMOOTH = "smoothness: {weight: 0.1, graph: {kind: complete}}"
LARGEST = "max_difference_robustness: {weight: 1, graph: {kind: knn, n_neighbors: 3}}"
SWEEP = "objective: {{gradient_matching: 1, {}}}\nsweep: {{{}: [0.05, 0.4, 2]}}\n"
RIDGE = DATA + "model: {kind: mlp, hidden: [5], task: regression}\n"
JOBS = {
    "sweep": RIDGE
    + SWEEP.format(ROBUST, "pairwise_robustness")
    + "baselines: [{method: gradient}, {method: smoothgrad, scale: [0.2, 1], "
    "n_samples: 30}]\n",
    "sparse": RIDGE + SWEEP.format(f"{ROBUST}, sparsity: 0.1", "sparsity"),
    "smooth": RIDGE + SWEEP.format(f"{ROBUST}, {SMOOTH}", "smoothness"),
    "kernel": RIDGE
    + SWEEP.format("kernel_robustness: {lengthscale: 1}", "kernel_robustness"),
    "largest": RIDGE + SWEEP.format(LARGEST, "max_difference_robustness"),
    "limits": RIDGE
    + f"objective: {{gradient_matching: 1, {ROBUST}}}\n"
    + "limits: {pairwise_robustness: [0.5, 3]}\n",
    "slopes": FOREST + "explain: {kind: slopes, graph: {kind: knn, n_neighbors: 8}}\n",
    "default": FOREST + "explain: {}\n",
    "parts": FOREST + f"explain: {{offset: null, {NEAR}}}\n",
    "offset": FOREST + f"explain: {{offset: main_effects, metric: uniform, {NEAR}}}\n",
    "effects": FOREST + "explain: {kind: contributions, metric: effects}\n",
    "formula": "data: {grid: {low: -1, high: 1, per_dimension: 12, dimensions: 1}}\n"
    "function: {name: power, degree: 3}\n"
    + SWEEP.format(ROBUST, "pairwise_robustness"),
    "lime": FOREST + "lime: {rows: 2, diagnose: false}\n",
    "split": DATA.replace(", explain: 24", "")
    + "model: {kind: linear}\ninteractions: {scheme: {kind: split}}\n",
    "patches": DATA.replace(", explain: 24", "")
    + "model: {kind: linear}\ninteractions: {scheme: {kind: minipatches, "
    "n_patches: 120}}\n",
}
COMMANDS = dict.fromkeys(("default", "slopes", "parts", "offset", "effects"), "explain")
COMMANDS |= {"lime": "lime"}
COMMANDS |= dict.fromkeys(("split", "patches"), "interactions")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """The folder of the results of a job, made once."""
    folder, made = tmp_path_factory.mktemp("verify"), {}
    X = np.random.default_rng(0).normal(size=(90, 4)).round(3)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.2 * X[:, 3]
    rows = [",".join(map(str, [*x, t])) for x, t in zip(X, y.round(4), strict=True)]
    (folder / "table.csv").write_text("\n".join(["a,b,c,d,y", *rows]), "utf-8")

    def results(job):
        if job not in made:
            made[job] = folder / job
            path = folder / f"{job}.yaml"
            path.write_text(f"name: result\n{JOBS[job]}", "utf-8")
            command = COMMANDS.get(job, "sweep")
            assert main([command, str(path), "-o", str(made[job]), "-q"]) in (0, 3)
        return made[job]

    return results


NOT_DERIVED = {
    "kernel": "kernel_robustness, because its graph or target is not saved",
    "largest": "max_difference_robustness, because its graph or target is not saved",
    "lime": "numbers of a file of propopt lime; its digest is right",
    "patches": "quantiles of Student's law, so widths of intervals",
}


DERIVED = ("sweep", "sparse", "smooth", "limits", "slopes", "parts", "offset")
DERIVED += ("effects", "default", "formula")


@pytest.mark.parametrize("job", JOBS)
def test_an_honest_result_is_not_refused(job, honest, capsys):
    assert checker.main([str(honest(job) / "result.json")]) == 0
    said = capsys.readouterr().out
    assert (f"not derived: {NOT_DERIVED.get(job)}" in said) == (job in NOT_DERIVED)
    if job in DERIVED:
        assert "derived: losses, objectives and lower bounds" in said
    if job in ("slopes", "parts", "offset"):
        best = po.results.Explanation.load(honest(job) / "result.npz")
        assert (
            f"derived: {100 * best.clear().clear_signs:.3g} % of signs are clear"
            in said
        )


@pytest.mark.parametrize("job", ["slopes", "default", "parts", "offset", "effects"])
def test_some_rows_of_an_honest_result_are_not_refused(job, honest, tmp_path, capsys):
    best = po.results.Explanation.load(honest(job) / "result.npz")
    some = best[[7, 2, 5]]
    some.save(tmp_path / "some.npz")
    assert checker.main([str(tmp_path / "some.npz")]) == 0
    is_alone = some.certificate.n_rows is None
    assert is_alone == ("excess" in best.details)
    assert ("derived: losses, obj" in capsys.readouterr().out) == is_alone


# ---- Forged ones


class Forged:
    """The files of a result, to be changed and written with digests of their own."""

    def __init__(self, base):
        self.base = base
        with np.load(f"{base}.npz") as file:
            self.arrays = {name: file[name].copy() for name in file.files}
        self.header = json.loads(str(self.arrays.pop("header")))
        self.manifest = json.loads(Path(f"{base}.json").read_text("ascii"))
        names = [x for x in self.manifest["finished"]["files"] if x.endswith(".csv")]
        self.tables = {
            name: list(
                csv.reader(io.StringIO(Path(f"{base}{name}").read_text("utf-8")))
            )
            for name in names
        }
        self.best = self.header.get("optimized", [self.header])[0]

    def scale(self, name, factor=1.001, place=None):
        array = self.arrays[name]
        place = (
            np.unravel_index(np.abs(array).argmax(), array.shape)
            if (place is None)
            else place
        )
        array[place] = array[place] * factor

    def grow(self, name):
        whole = self.arrays[name].dtype.kind in "iub"
        self.scale(name, 2 if whole else 1.001)

    def swap(self, name, axis=0, places=(0, 1)):
        array = np.moveaxis(self.arrays[name], axis, 0)
        array[list(places)] = array[list(places[::-1])].copy()

    def column(self, suffix, name):
        return self.tables[suffix][0].index(name)

    def cell(self, suffix, column, change, row=1):
        k = self.column(suffix, column) if isinstance(column, str) else column
        self.tables[suffix][row][k] = str(change(self.tables[suffix][row][k]))

    def swap_lines(self, suffix, first=1, second=2):
        rows = self.tables[suffix]
        rows[first], rows[second] = rows[second], rows[first]

    def write(self):
        plain = {k: x for k, x in self.header.items() if k != "digest"}
        text = json.dumps(plain)
        digest = hashlib.sha256(text.encode())
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.tobytes())
        told = f'{text[:-1]}, "digest": "{digest.hexdigest()}"}}'
        np.savez(f"{self.base}.npz", header=np.array(told), **self.arrays)
        for suffix, rows in self.tables.items():
            stream = io.StringIO(newline="")
            csv.writer(stream, lineterminator="\n").writerows(rows)
            Path(f"{self.base}{suffix}").write_text(stream.getvalue(), "utf-8")
        files = self.manifest["finished"]["files"]
        for suffix in files:
            data = Path(f"{self.base}{suffix}").read_bytes()
            files[suffix] = hashlib.sha256(data).hexdigest()
        Path(f"{self.base}.json").write_text(json.dumps(self.manifest), "ascii")


def more(cell):
    return float(cell) * 1.001


def at(path, change):
    """A forgery that changes what stands at keys of an object of the files."""
    kind, *keys, last = path

    def forge(files):
        place = getattr(files, kind)
        for key in keys:
            place = place[key]
        place[last] = change(place[last])

    return forge


def exchanged(own):
    own[0], own[1] = own[1], own[0]


def cheaper(files):
    """Loss and objective agree, the bound stays: a better optimum is claimed."""
    proof, losses = files.best["certificate"], files.best["losses"]
    losses["gradient_matching"] *= 0.999
    proof["value"] = sum(w * losses[k] for k, w in files.best["weights"].items())


def heavier(files):
    """Another graph, with losses and objective that agree; W is not its optimum."""
    files.arrays["problem_data.pairwise_robustness.similarities"] *= 1.05
    for one in (*files.header["optimized"], *files.header["baselines"]):
        one["losses"]["pairwise_robustness"] *= 1.05
        if one["certificate"]:
            rise = 0.05 / 1.05 * one["losses"]["pairwise_robustness"]
            rise *= one["weights"]["pairwise_robustness"]
            for name in ("value", "lower_bound", "scale"):
                one["certificate"][name] += rise


def better(files, share):
    """The bound of an optimum of which less is proved, raised to claim more."""
    proof = files.best["certificate"]
    proof["lower_bound"] += share * proof["value"]
    proof["value"] = max(proof["value"], proof["lower_bound"])


def worse_attributions(files):
    """W is moved, all losses follow, the bound does not."""
    W = files.arrays["optimized.0.attributions"]
    W += 0.05 * np.abs(W).mean()
    problem_data, one = checker.under(files.arrays, "problem_data"), files.best
    for name in one["losses"]:
        one["losses"][name] = checker.measured(problem_data, name, W)[0]
    one["certificate"]["value"] = one["certificate"]["lower_bound"] = sum(
        w * one["losses"][k] for k, w in one["weights"].items()
    )
    one["certificate"]["scale"] = one["certificate"]["value"]


def dropped_optimum(files):
    last = len(files.header["optimized"]) - 1
    del files.header["optimized"][last]
    del files.arrays[f"optimized.{last}.attributions"]


def dropped_edge(files):
    for key in ("rows", "similarities"):
        name = f"problem_data.pairwise_robustness.{key}"
        files.arrays[name] = files.arrays[name][1:]


def swapped_optima(files):
    first, second = (f"optimized.{k}.attributions" for k in (0, 1))
    a = files.arrays
    a[first], a[second] = a[second], a[first]


def in_both(files):
    """An estimate in archive and table."""
    files.scale("scores", place=0)
    files.cell("_interactions.csv", "score", more)


def shifted(files):
    """With its interval, but not its statistic."""
    in_both(files)
    change = files.arrays["scores"][0] * (1.0 - 1.0 / 1.001)
    for end in ("ci_low", "ci_high"):
        files.cell("_interactions.csv", end, lambda x: float(x) + change)


W0, EDGES = "optimized.0.attributions", "problem_data.pairwise_robustness.rows"
ALIKE, OWN = (
    "problem_data.pairwise_robustness.similarities",
    "problem_data.gradient_matching.target",
)
OFFSET = "problem_data.pairwise_robustness.offset"
TABLE, PAIRS = "_attributions.csv", "_interactions.csv"
ROBUSTNESS, MATCHING = "loss.pairwise_robustness", "loss.gradient_matching"


def to(value):
    return lambda _: value


@pytest.mark.parametrize(("name", "change"), refusals(__file__, "forgeries"))
def test_a_forged_result_is_refused(name, change, honest, tmp_path, capsys):
    base = tmp_path / "result"
    shutil.copytree(honest(name.partition(":")[0]), tmp_path, dirs_exist_ok=True)
    files = Forged(base)
    files.write()  # the forger's own digests are right
    assert checker.main([f"{base}.json"]) == 0, capsys.readouterr().out
    exec(change, globals() | {"f": files})
    files.write()
    assert checker.main([f"{base}.json"]) == 1
    assert "digest" not in capsys.readouterr().out.partition("REFUSED")[2]


# ---- Every field of every file


def leaves(place, path=()):
    """Paths to what is neither a list nor an object; of lists the first two items."""
    items = place.items() if isinstance(place, dict) else enumerate(place[:2])
    for key, own in items:
        if isinstance(own, dict | list):
            yield from leaves(own, (*path, key))
        else:
            yield (*path, key)


def other(value):
    """Another value of the same kind, by a thousandth where it is a number."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.001 if isinstance(value, float) and value else value + 1
    if value is None or value == "":
        return 7.5
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return str(other(kind(value)))
    return {"True": "False", "False": "True"}.get(value, f"{value}x")


def tamperings(files):
    """By path, what changes one thing in one of the files."""
    for kind in ("header", "manifest"):
        for path in leaves(getattr(files, kind)):
            if path[0] not in ("digest", "finished", "inputs", "versions"):
                yield ".".join(map(str, (kind, *path))), at((kind, *path), other)
    for suffix, rows in files.tables.items():
        for k, name in enumerate(rows[0]):
            for row, words in ((0, "name"), (1, "cell")):
                yield f"{suffix}: {words} {name}", at(("tables", suffix, row, k), other)
    for name in files.arrays:
        yield f"array {name}", lambda f, name=name: f.grow(name)


STATED_ONCE = re.compile(
    r"header\.(version|interrupted|method|seconds|quantity\.words)"
    r"|header\.((optimized|baselines)\.\d\.)?"
    r"(certificate\.(kind|violation|distance|n_rows)|evaluations|background|row_size"
    r"|model_seconds|target\.(scale|spread|degrees|relation))"
    r"|header\.(optimized\.0|baselines\.\d)\.(solver|target)"  # it is not picked
    r"|manifest\.problem\.(?!name$|seed$).*"  # settings
    r"|manifest\.(job|function|model|units|picked\.attributions)"  # words behind names
    r"|manifest\.score\..*"
    r"|manifest\.additivity_error"  # rounding alone
    r"|manifest\.patches(\.(?!n_patches).*)?"  # why fitting stopped
    r"|_attributions\.csv: name "
    r"|array (.*points|details\..*|.*\.standard_errors|.*\.fixed)"
    r"|(header|header\.main)\.(n_groups|n_patches|n_row_groups|patch_error|columns\..*|main)"
    r"|(header|header\.main)\.(method|units|error|quantity\..*|error_range\..*)"
    r"|manifest\.(settings\..*|units|mean_error.*|interrupted)"
    r"|_(interactions|main_effects)\.csv: cell (p_one|degenerate|used)"
    r"|array (main\.)?monte_carlo"  # it is zero
)
"""What no second place states, nor anything that is derived."""


@pytest.mark.sampled(2)  # sweep and split
@pytest.mark.parametrize("job", ["sweep", "default", "split", "slopes"])
def test_what_is_stated_twice_cannot_be_changed_once(job, honest, tmp_path, capsys):
    base = tmp_path / "result"
    shutil.copytree(honest(job), tmp_path, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in tmp_path.glob("result*")}
    tried, passed = 0, []
    for name, change in tamperings(Forged(base)):
        for path, data in before.items():
            path.write_bytes(data)
        files = Forged(base)
        change(files)
        files.write()
        tried += 1
        if checker.main([f"{base}.json"]) == 0:
            passed.append(name)
    capsys.readouterr()
    assert tried > 100
    assert [name for name in passed if not STATED_ONCE.fullmatch(name)] == []


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".svg"])
def test_flipped_bytes_are_refused(suffix, honest, tmp_path, capsys):
    shutil.copytree(honest("sweep"), tmp_path, dirs_exist_ok=True)
    path = tmp_path / f"result{suffix}"
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    assert checker.main([str(tmp_path / "result.json")]) == 1
    capsys.readouterr()


def test_it_imports_nothing_of_ours():
    words = _FILE.read_text("utf-8").replace("tools/verify", "")
    imports = [x for x in words.splitlines() if x.startswith(("import", "from"))]
    assert not any("propopt" in x or "scipy" in x or "pandas" in x for x in imports)


def test_of_a_loss_without_slope_that_is_no_sum_of_sizes_no_bound_is_derived(
    monkeypatch,
):
    problem_data, W = {"near.target": np.zeros((2, 2))}, np.ones((2, 2))
    assert checker.least_excess(problem_data, {"near": 1.0}, W) == 4.0
    measured = checker.measured
    monkeypatch.setattr(
        checker,
        "measured",
        lambda problem_data, name, W: (
            (1.0, None) if name == "new" else measured(problem_data, name, W)
        ),
    )
    assert checker.least_excess(problem_data, {"near": 1.0, "new": 1.0}, W) is None


@pytest.mark.parametrize("alone", [True, False], ids=["by themselves", "jointly"])
@pytest.mark.parametrize("k", [0, 8, 14])
def test_columns_that_hardly_move_or_do_not_are_no_contradiction(alone, k, tmp_path):
    def f(table):
        a, b, c, d = np.asarray(table).T
        return a * b + 10.0**-k * b * c + 10.0 * d

    X = np.random.default_rng(0).normal(size=(60, 4))
    best = po.explain(f, X[:20], data=X[20:] if alone else None, progress=False)
    assert (best.metric > 0.0).tolist() == [True, True, True, False]
    best.save(tmp_path / "best.npz")
    assert checker.main([str(tmp_path / "best.npz")]) == 0
    header, arrays = checker.read_archive(tmp_path / "best.npz")
    header["certificate"]["lower_bound"] *= 1.0 + 1e-5
    problem_data = checker.under(arrays, "problem_data")
    with pytest.raises(checker.Contradiction, match="bound"):
        checker.check_explanation("best", header, arrays, problem_data, set())

"""``python -m benchmarks.million_rows [--rows 10000 100000 1000000] [--folder DIR]``.

A table in a Parquet file, explained jointly and row by row, with the seconds and the
peak memory of each stage. Each size and way runs in a process of its own, with one
thread for each processor. ``docs/guide/million_rows.csv`` is the record, and
``docs/guide/million_rows.md`` shows it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp

import propopt as po
from propopt.losses.graphs.points import SimilarityGraph


RECORD = Path(__file__).parents[1] / "docs" / "guide" / "million_rows.csv"
Way: TypeAlias = Callable[[Path, Path, int, int], "Stages"]
"""From the path of a table, a folder, the numbers of rows and columns."""

WEIGHTS = np.logspace(-2, 2, 25)


# ---- Tables and models


def write_table(path: Path, n_rows: int, n_columns: int) -> None:
    """Correlated columns: six hidden ones, and noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    mixing = np.random.default_rng(1).normal(size=(6, n_columns)) / 2.5
    names = [f"x{j}" for j in range(n_columns)]
    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, n_rows, 100_000):
        n = min(100_000, n_rows - first)
        X = rng.normal(size=(n, 6)) @ mixing + 0.4 * rng.normal(size=(n, n_columns))
        block = pa.table(dict(zip(names, X.T, strict=True)))
        if writer is None:
            writer = pq.ParquetWriter(path, block.schema)
        writer.write_table(block, row_group_size=50_000)
    if writer is not None:
        writer.close()


def fitted_model(path: Path, n_trees: int, n_leaves: int) -> tuple[Any, pd.DataFrame]:
    """LightGBM, fitted to the first 5,000 rows, and these rows."""
    import pyarrow.parquet as pq
    from lightgbm import LGBMRegressor

    group = pq.ParquetFile(path).read_row_group(0)
    train = group.slice(0, 5000).to_pandas()
    y = train["x0"] * train["x1"] + np.sin(3 * train["x2"]) + train.iloc[:, 3:].sum(1)
    model = LGBMRegressor(
        n_estimators=n_trees, num_leaves=n_leaves, verbose=-1, n_jobs=1
    )
    return model.fit(train, y), train


# ---- Stages, timed


class Stages:
    """Seconds and peak memory of stages, as rows of the record."""

    def __init__(self, way: str, n_rows: int, n_columns: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self._of = {"way": way, "rows": n_rows, "columns": n_columns}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the body."""
        wall, processor = time.perf_counter(), time.process_time()
        yield
        self.rows.append(
            {
                **self._of,
                "stage": name,
                "seconds": round(time.perf_counter() - wall, 3),
                "processor_seconds": round(time.process_time() - processor, 3),
                "peak_gib": round(
                    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2
                ),
            }
        )
        print(*self.rows[-1].values(), sep="\t", flush=True)

    def note(self, text: str) -> None:
        """Add a remark to the last stage."""
        self.rows[-1]["note"] = text


def jointly(path: Path, folder: Path, n_rows: int, n_columns: int) -> Stages:
    """Slopes and neighbours of all rows, which are saved for the next processes."""
    import pyarrow.parquet as pq

    model, _ = fitted_model(path, 100, 31)
    stages = Stages("jointly", n_rows, n_columns)
    with stages.stage("read"):
        X = pq.read_table(path).to_pandas()
    with stages.stage("tables of the data law"):
        wrapped = po.wrap(model, data=X)
        function = po.functions.smoothed(wrapped, law="data", data=X)
        function.estimate(X.iloc[:2])
    with stages.stage("slopes of LightGBM, 100 × 31"):
        slopes = function.estimate(X)
    with stages.stage("8 nearest rows"):
        scaled = (X - X.mean()) / X.std()
        graph = po.graphs.knn_graph(scaled, 8)
        del scaled
    stages.note(graph.recall_in_words)
    np.save(folder / "slopes.npy", slopes.values)
    sp.save_npz(folder / "graph.npz", sp.csr_matrix(graph.similarities))
    return stages


def objective_of(folder: Path) -> tuple[po.Objective, str]:
    """The objective of these slopes and neighbours, and its loss of robustness."""
    graph = SimilarityGraph(sp.csr_array(sp.load_npz(folder / "graph.npz")), "knn")
    robust = po.PairwiseRobustness(graph)
    return po.GradientMatching(np.load(folder / "slopes.npy")) + robust, robust.name


def optimum(path: Path, folder: Path, n_rows: int, n_columns: int) -> Stages:
    """One optimum of the slopes and neighbours in a folder, to Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    del path
    stages = Stages("jointly", n_rows, n_columns)
    objective, _ = objective_of(folder)
    with stages.stage("one optimum"):
        best = po.solve(objective)
        W = best.attributions
    stages.note(f"gap {best.gap:.0e}")
    with stages.stage("write"):
        columns = {f"x{j}": w for j, w in enumerate(W.T)}
        pq.write_table(pa.table(columns), folder / "attributions.parquet")
    return stages


def curve(path: Path, folder: Path, n_rows: int, n_columns: int) -> Stages:
    """The losses for 25 weights."""
    del path
    stages = Stages("jointly", n_rows, n_columns)
    objective, name = objective_of(folder)
    with stages.stage("losses for 25 weights"):
        trade_offs = po.sweep(objective, {name: WEIGHTS})
        gap = max(x.gap for x in trade_offs.optimized)
    stages.note(f"gap {gap:.0e}")
    return stages


def row_by_row(path: Path, folder: Path, n_rows: int, n_columns: int) -> Stages:
    """Each row by itself, from file to file."""
    n_trees, n_leaves = (100, 31) if n_columns > 10 else (25, 15)
    model, train = fitted_model(path, n_trees, n_leaves)
    stages = Stages("row by row", n_rows, n_columns)
    with stages.stage("fit"):
        explainer = po.Explainer(model, data=train).fit(progress=False)
    with stages.stage(f"explain, LightGBM {n_trees} × {n_leaves}"):
        explained = explainer.explain(path, to=folder / "parts")
    stages.note(f"largest gap {explained.gap:.0e}")
    return stages


def job(path: Path, folder: Path, n_rows: int, n_columns: int) -> Stages:
    """All rows at once, by ``propopt sweep``, from file to file."""
    from propopt.cli import main

    model, _ = fitted_model(path, 100, 31)
    model.booster_.save_model(folder / "model.txt")
    problem = folder / "problem.yaml"
    problem.write_text(PROBLEM.format(path=path), encoding="utf-8")
    stages = Stages("propopt sweep", n_rows, n_columns)
    with stages.stage("propopt sweep, 25 weights, one explanation"):
        main(["sweep", str(problem), "--output", str(folder / "out"), "--quiet"])
    return stages


PROBLEM = """\
data: {{parquet: {path}}}
model: {{booster: model.txt}}
objective:
  gradient_matching: 1
  pairwise_robustness: {{graph: {{kind: knn, n_neighbors: 8}}}}
sweep:
  pairwise_robustness: {{low: 0.01, high: 100, points: 25, scale: log}}
"""


# ---- The record


def run(ways: Sequence[Way], n_rows: int, n_columns: int, root: Path) -> Any:
    """The stages of these ways, each in a process of its own, with one folder."""
    path = root / f"{n_rows}_{n_columns}.parquet"
    if not path.is_file():
        write_table(path, n_rows, n_columns)
    folder, rows = Path(tempfile.mkdtemp(dir=root)), []
    for way in ways:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows += pool.apply(way, (path, folder, n_rows, n_columns)).rows
    shutil.rmtree(folder)
    return rows


def main() -> None:
    """Run all sizes, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--streamed", type=int, default=10**7, help="rows, 8 columns")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=RECORD)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as root:
        for n_rows in arguments.rows:
            rows += run((jointly, optimum, curve), n_rows, 30, Path(root))
            rows += run((row_by_row,), n_rows, 30, Path(root))
        rows += run((job,), max(arguments.rows), 30, Path(root))
        if arguments.streamed:
            rows += run((row_by_row,), arguments.streamed, 8, Path(root))
    record = pd.DataFrame(rows)
    record["machine"] = f"{os.cpu_count()} cores, {platform.machine()}"
    record.to_csv(arguments.output, index=False)


if __name__ == "__main__":
    main()

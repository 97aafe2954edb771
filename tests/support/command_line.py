"""The command line, a small problem file for it, and what it leaves in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from propopt.cli import main


ROOT = Path(__file__).parents[2]
FILE = """\
data:
  grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: chain}}
sweep:
  pairwise_robustness: [0.1, 1, 10]
baselines:
  - {method: gradient}
  - {method: smoothgrad, scale: [0.25, 0.5], n_samples: 10}
"""


def swept(*problems):
    """The names of what sweeps write."""
    suffixes = (".csv", ".json", ".npz", ".svg", "_attributions.csv")
    return sorted(f"{name}{suffix}" for name in problems for suffix in suffixes)


def write(folder, name, text):
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def sweep(*arguments):
    return main(["sweep", *map(str, arguments)])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def python(*arguments):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

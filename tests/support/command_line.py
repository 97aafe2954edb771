"""The command line, a small problem file for it, and what it leaves in a folder."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from exact_csv import read_csv

import propopt as po
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


@dataclass(frozen=True)
class Done:
    """What a command printed, and what it wrote of ``file.yaml``."""

    path: Path
    printed: str

    @property
    def folder(self):
        return self.path.parent / "out"

    @cached_property
    def stored(self):
        """The manifest."""
        return json.loads((self.folder / "file.json").read_text())

    @cached_property
    def subject(self):
        """What the library reads of the file."""
        return po.problems.read_problem(self.path).subject

    def table(self, suffix="", **settings):
        return read_csv(self.folder / f"file{suffix}.csv", **settings)

    def load(self, kind=po.results.Explanation):
        return kind.load(self.folder / "file.npz")


def done(folder, text, *options):
    """Run the job of a file; nothing is warned of."""
    path = folder / "file.yaml"
    path.write_text(text)
    (job,) = re.findall("(?m)^(explain|lime|interactions|compare):", text) or ["sweep"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main([job, str(path), "-o", str(folder / "out"), *options]) == 0
    assert err.getvalue() == ""
    return Done(path, out.getvalue())


def sweep(*arguments):
    return main(["sweep", *map(str, arguments)])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


PROGRAM = "import sys; from propopt.cli import main; sys.exit(main(sys.argv[1:]))"


def environment(**settings):
    """That of a process which finds the package."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path} | settings


def python(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,  # it hangs, whatever the load
        check=False,
    )

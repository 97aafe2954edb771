"""What is published, judged from what tools say of it.

``pyright --verifytypes propopt --ignoreexternal --outputjson | published.py types``
``published.py sizes LOCKED...``, files of ``uv pip compile --format pylock.toml``
"""

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.markers import Marker
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename


UNTYPED = (
    "propopt.inductive.GaussianProcessExplainer",  # these two are its BaseEstimators
    "propopt.inductive.estimator.GaussianProcessExplainer",
    "propopt.interactions.ILOCO",
    "propopt.interactions.iloco.ILOCO",
    "propopt.problems.file.ProblemSchema",  # and what says that it makes the last
    "propopt.problems.file.ProblemSchema.interactions",
    "propopt.problems.file.read_schema",
    "propopt.problems.jobs.interactions.InteractionsSection",
    "propopt.problems.jobs.interactions.InteractionsSection.outputs",
    "propopt.problems.jobs.interactions.InteractionsSection.documents",
    "propopt.problems.jobs.interactions.InteractionsSection.solve",
    "propopt.structures.fitted_model.OneBoostedLabel",  # classifiers of scikit-learn
    "propopt.structures.fitted_model.OneLabel",
)
"""What has a type that is not known, because scikit-learn has no types."""


def types(report: str) -> str | None:
    """What is wrong with the types of public names, if something is."""
    complete = json.loads(report)["typeCompleteness"]
    counts = complete["exportedSymbolCounts"]
    n_names = sum(counts.values())
    unknown = {
        symbol["name"]: [part["message"] for part in symbol["diagnostics"]]
        for symbol in complete["symbols"]
        if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]
    }
    print(f"{n_names} public names; {len(unknown)} have a type that is not known")
    if n_names < 5000:
        return "too few public names: is it the installed wheel that was read?"
    new = {name: why for name, why in unknown.items() if name not in UNTYPED}
    if new:
        return "\n".join(f"{name}: {' '.join(why)}" for name, why in new.items())
    known = [name for name in UNTYPED if name not in unknown]
    return f"typed by now, so no exceptions: {known}" if known else None


def sizes(paths: list[str]) -> None:
    """Print how many packages a resolution has here, and what is downloaded."""
    for path in paths:
        packages = [
            package
            for package in tomllib.loads(Path(path).read_text())["packages"]
            if Marker(package.get("marker", "python_version > '3'")).evaluate()
        ]
        total = sum(map(_size, packages))
        print(f"{Path(path).name}: {len(packages)} packages, {total / 1e6:.0f} MB")


def _size(package: dict) -> int:
    """Bytes of the first wheel that fits here, or of the sources."""
    return next(_fitting(package.get("wheels", [])), package.get("sdist", {})).get(
        "size", 0
    )


def _fitting(wheels: list[dict]) -> Iterator[dict]:
    here = frozenset(sys_tags())
    for wheel in wheels:
        name = wheel.get("name") or wheel["url"].rpartition("/")[2]
        if parse_wheel_filename(name)[3] & here:
            yield wheel


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    sys.exit(types(sys.stdin.read()) if command == "types" else sizes(arguments))

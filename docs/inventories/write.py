"""Write the inventories: what pages link to elsewhere, for builds without a network.

``python docs/inventories/write.py`` after a change of the table; a test imports each
name, and holds the files to the table.
"""

import zlib
from pathlib import Path


HERE = Path(__file__).parent
LIBRARY = "library/{0}.html#$"
NUMPY = "reference/generated/$.html#$"
RANDOM = "reference/random/generator.html#$"
PANDAS = "reference/api/$.html#$"
SKLEARN = "modules/generated/$.html#$"
CVXPY = "api_reference/{0}.html#$"

LINKS = {
    "python": {
        ("class", "pathlib.Path"): LIBRARY.format("pathlib"),
        ("class", "collections.abc.Callable"): LIBRARY.format("collections.abc"),
        ("class", "collections.abc.Iterable"): LIBRARY.format("collections.abc"),
        ("class", "collections.abc.Mapping"): LIBRARY.format("collections.abc"),
        ("class", "collections.abc.Sequence"): LIBRARY.format("collections.abc"),
        ("exception", "AttributeError"): LIBRARY.format("exceptions"),
        ("exception", "Exception"): LIBRARY.format("exceptions"),
        ("exception", "ImportError"): LIBRARY.format("exceptions"),
        ("exception", "OSError"): LIBRARY.format("exceptions"),
        ("exception", "UserWarning"): LIBRARY.format("exceptions"),
        ("exception", "ValueError"): LIBRARY.format("exceptions"),
    },
    "numpy": {
        ("class", "numpy.random.RandomState"): "reference/random/legacy.html#$",
        ("class", "numpy.ndarray"): NUMPY,
        ("class", "numpy.random.Generator"): RANDOM,
    },
    "pandas": {
        ("class", "pandas.DataFrame"): PANDAS,
        ("class", "pandas.Series"): PANDAS,
    },
    "sklearn": {
        ("class", "sklearn.base.BaseEstimator"): SKLEARN,
        ("class", "sklearn.gaussian_process.kernels.Kernel"): SKLEARN,
    },
    "cvxpy": {
        ("class", "cvxpy.problems.problem.Problem"): CVXPY.format("cvxpy.problems"),
        ("class", "cvxpy.expressions.expression.Expression"): CVXPY.format(
            "cvxpy.expressions"
        ),
    },
    "matplotlib": {
        ("class", "matplotlib.axes.Axes"): "api/_as_gen/$.html#$",
    },
}
"""By project: kind and name of an object, and its address; ``$`` is the name."""


def inventory(project: str) -> bytes:
    """The file of a project, as Sphinx reads it (version 2)."""
    rows = [
        f"{name} py:{kind} 1 {place.replace('$', name)} -\n"
        for (kind, name), place in sorted(LINKS[project].items())
    ]
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    return head.encode() + zlib.compress("".join(rows).encode(), 9)


if __name__ == "__main__":
    for project in LINKS:
        (HERE / f"{project}.inv").write_bytes(inventory(project))

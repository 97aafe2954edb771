"""What n samples make of the limits: ridge, the row itself, and noise.

- :func:`~propopt.lime.finite.expected.expected`: what n samples give in their mean.
- :func:`~propopt.lime.finite.noise.single_run`: how a run scatters around that.
- :func:`~propopt.lime.finite.ranking.ranking_chances`: whether a run tells the largest.
- :func:`~propopt.lime.finite.package_runs.compare_with_package`: runs of the package.
- :func:`~propopt.lime.finite.selection.kept_columns`: which columns a choice of a few
  keeps.
"""

from propopt.lime.finite.comparison import PackageComparison
from propopt.lime.finite.expected import (
    Expected,
    expected,
    first_row_shift,
    ridge_limit,
)
from propopt.lime.finite.fit import FiniteFit
from propopt.lime.finite.noise import single_run
from propopt.lime.finite.package_runs import compare_with_package
from propopt.lime.finite.ranking import RankingChances, ranking_chances
from propopt.lime.finite.run import SingleRun
from propopt.lime.finite.selection import Selection, kept_columns


__all__ = [
    "Expected",
    "FiniteFit",
    "PackageComparison",
    "RankingChances",
    "Selection",
    "SingleRun",
    "compare_with_package",
    "expected",
    "first_row_shift",
    "kept_columns",
    "ranking_chances",
    "ridge_limit",
    "single_run",
]

"""What n samples make of the limits: ridge, the row itself, noise, and bounds.

- :func:`~propopt.lime.finite.expected.expected`: what n samples give in their mean.
- :func:`~propopt.lime.finite.selection.kept_columns`: which columns a choice of a few
  keeps.
"""

from propopt.lime.finite.expected import (
    Expected,
    expected,
    first_row_shift,
    ridge_limit,
)
from propopt.lime.finite.fit import FiniteFit
from propopt.lime.finite.selection import Selection, kept_columns


__all__ = [
    "Expected",
    "FiniteFit",
    "Selection",
    "expected",
    "first_row_shift",
    "kept_columns",
    "ridge_limit",
]

"""How well a surrogate on bits follows its function, and where it gets it from.

- :func:`~propopt.lime.fidelity.effective.effective_share`: samples that count.
- :func:`~propopt.lime.fidelity.locality.split_by_cells` and
  :func:`~propopt.lime.fidelity.locality.split_by_columns`: how far from the row
  coefficients come from, as a :class:`~propopt.lime.fidelity.locality.LocalitySplit`.
- :func:`~propopt.lime.fidelity.variance.variance`: how much a function varies under
  the weighted law, and :func:`~propopt.lime.fidelity.variance.weighted_r2`, how much
  of it a surrogate explains; :func:`~propopt.lime.fidelity.variance.local_gap`.
"""

from propopt.lime.fidelity.effective import effective_share
from propopt.lime.fidelity.locality import (
    LocalitySplit,
    split_by_cells,
    split_by_columns,
)
from propopt.lime.fidelity.variance import (
    Variance,
    local_gap,
    variance,
    weighted_r2,
)


__all__ = [
    "LocalitySplit",
    "Variance",
    "effective_share",
    "local_gap",
    "split_by_cells",
    "split_by_columns",
    "variance",
    "weighted_r2",
]

"""How well a surrogate on bits follows its function, and where it gets it from.

- :func:`~propopt.lime.fidelity.effective.effective_share`: samples that count.
- :func:`~propopt.lime.fidelity.locality.split_by_cells` and
  :func:`~propopt.lime.fidelity.locality.split_by_columns`: how far from the row
  coefficients come from, as a :class:`~propopt.lime.fidelity.locality.LocalitySplit`.
"""

from propopt.lime.fidelity.effective import effective_share, log_mean_weight
from propopt.lime.fidelity.locality import (
    LocalitySplit,
    split_by_cells,
    split_by_columns,
)


__all__ = [
    "LocalitySplit",
    "effective_share",
    "log_mean_weight",
    "split_by_cells",
    "split_by_columns",
]

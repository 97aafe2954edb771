"""Products of factors of one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.structures.products.factors import Factors
from propopt.structures.products.seen.columns import Bent, SeenColumn


@final
@dataclass(frozen=True, eq=False)
class Joint:
    """The product of factors of columns that come from one column of the table.

    Parameters
    ----------
    parts : tuple
        Factors, one each, and how their columns are seen.
    """

    parts: tuple[tuple[Factors, SeenColumn], ...]

    @property
    def knots(self) -> Array:
        """Where maps have kinks, increasing."""
        bent = [seen.knots for _, seen in self.parts if isinstance(seen, Bent)]
        return np.unique(np.concatenate([np.zeros(0), *bent]))

    def __call__(self, values: Array) -> Array:
        """At values (n,) of the table."""
        factors = [factor.at(seen.of(values))[0] for factor, seen in self.parts]
        return np.asarray(np.prod(factors, axis=0))

"""How much is computed: by default minutes, with ``--full`` what the paper has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt.papers.iloco.learners import LEARNERS, LearnerName


@final
@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of the simulations.

    Parameters
    ----------
    n_rows : int
        N.
    n_patches : int
        B.
    n_replicates, n_coverage : int
        Of each point of a curve of successes, and of coverage.
    n_new : int
        Rows on which the target of an interval is evaluated.
    ratios : tuple of float
        Multipliers "snr" of the first product.
    learners : tuple of str
        Of the figures in the appendix; the others have all.
    told : str
        In what this differs from the paper; empty if in nothing that is stated there.
    """

    n_rows: int = 500
    n_patches: int
    n_replicates: int
    n_coverage: int
    n_new: int
    ratios: tuple[float, ...]
    learners: tuple[LearnerName, ...]
    told: str

    @property
    def places(self) -> np.ndarray:
        """``ratios`` as an array (K,)."""
        return np.array(self.ratios)


REDUCED: Final = Scale(
    n_patches=1500,
    n_replicates=4,
    n_coverage=60,
    n_new=2000,
    ratios=(0.0, 3.0, 8.0),
    learners=("KRBF", "RF"),
    told="1500 patches instead of 10,000 and 4 replicates; hyper-parameters are not "
    "stated",
)
FULL: Final = Scale(
    n_patches=10_000,
    n_replicates=50,
    n_coverage=50,
    n_new=10_000,
    ratios=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
    learners=LEARNERS,
    told="hyper-parameters are not stated",
)

"""How much is computed: by default minutes, with ``--full`` what the paper has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Values
from propopt.papers.iloco.learners import LEARNERS, LearnerName
from propopt.papers.iloco.simulations import SimulationNumber


@final
@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of the simulations.

    Parameters
    ----------
    n_rows : int
        N.
    n_patches, n_replicates : mapping
        B, and how often each point of a curve is repeated, by learner.
    n_orders : int
        How often points of curves of pairs and triples are.
    n_coverage, n_covered : int
        How often intervals are made, and B of theirs.
    n_new : int
        Rows on which the target of an interval is evaluated.
    ratios : tuple of float
        Multipliers "snr" of the first product.
    main, appendix : tuple of (str, str)
        Simulations and learners of figure 2, and of A2 to A5.
    told : str
        In what this differs from the paper.
    """

    n_rows: int = 500
    n_patches: Mapping[LearnerName, int]
    n_replicates: Mapping[LearnerName, int]
    n_orders: int
    n_coverage: int
    n_covered: int
    n_new: int
    ratios: tuple[float, ...]
    main: tuple[tuple[SimulationNumber, LearnerName], ...]
    appendix: tuple[tuple[SimulationNumber, LearnerName], ...]
    told: str

    @property
    def places(self) -> Values:
        """``ratios`` as an array (K,)."""
        return np.array(self.ratios)


REDUCED: Final = Scale(
    n_patches={"KRBF": 1500, "MLP": 600, "RF": 1500},
    n_replicates={"KRBF": 4, "MLP": 2, "RF": 2},
    n_orders=3,
    n_coverage=30,
    n_covered=300,
    n_new=1000,
    ratios=(0.0, 3.0, 8.0),
    main=(("i", "KRBF"), ("i", "MLP"), ("i", "RF"), ("ii", "KRBF")),
    appendix=(("i", "KRBF"),),
    told="600 to 1500 patches instead of 10,000, 2 to 4 replicates, and "
    "hyper-parameters of ours",
)
_BOTH: Final[tuple[SimulationNumber, ...]] = ("i", "ii")
_ALL: Final = tuple((number, name) for number in _BOTH for name in LEARNERS)
FULL: Final = Scale(
    n_patches=dict.fromkeys(LEARNERS, 10_000),
    n_replicates=dict.fromkeys(LEARNERS, 50),
    n_orders=50,
    n_coverage=50,
    n_covered=10_000,
    n_new=10_000,
    ratios=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
    main=_ALL,
    appendix=_ALL,
    told="hyper-parameters of ours",
)

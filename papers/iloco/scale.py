"""How much is computed: by default minutes, with ``--full`` what the paper has.

Where minutes are too few for networks and forests, kernel machines stand alone: twenty
replicates of one learner decide more than two of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from papers.iloco.learners import LEARNERS, LearnerName
from papers.iloco.simulations import SimulationNumber
from propopt.base.arrays import Values


_OF_PAPER: Final = 10_000


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
    covered : tuple of str
        Learners of figures 3 and A6.
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
    covered: tuple[LearnerName, ...]

    @property
    def places(self) -> Values:
        """``ratios`` as an array (K,)."""
        return np.array(self.ratios)

    def told(self, *learners: LearnerName) -> str:
        """How much is computed of curves of these learners.

        The paper does not say how many replicates it has.
        """
        replicates = _counts(self.n_replicates[name] for name in learners)
        few = self.few_patches(*learners)
        return f"{replicates} replicates" + f", {few}" * bool(few)

    def few_patches(self, *learners: LearnerName) -> str:
        """How many there are, if they are not as many as in the paper."""
        patches = {self.n_patches[name] for name in learners}
        if patches == {_OF_PAPER}:
            return ""
        return f"{_counts(patches)} patches instead of {_OF_PAPER:,}"


def _counts(numbers: Iterable[int]) -> str:
    return " or ".join(f"{number:,}" for number in sorted(set(numbers)))


REDUCED: Final = Scale(
    n_patches={"KRBF": 1000, "MLP": 200, "RF": 500},
    n_replicates={"KRBF": 24, "MLP": 20, "RF": 24},
    n_orders=20,
    n_coverage=300,
    n_covered=300,
    n_new=1000,
    ratios=(0.0, 4.0, 5.0, 6.0),
    main=(("i", "KRBF"), ("i", "RF"), ("ii", "KRBF")),
    appendix=(("i", "KRBF"),),
    covered=("KRBF",),
)
_BOTH: Final[tuple[SimulationNumber, ...]] = ("i", "ii")
_ALL: Final = tuple((number, name) for number in _BOTH for name in LEARNERS)
FULL: Final = Scale(
    n_patches=dict.fromkeys(LEARNERS, _OF_PAPER),
    n_replicates=dict.fromkeys(LEARNERS, 50),
    n_orders=50,
    n_coverage=50,
    n_covered=10_000,
    n_new=10_000,
    ratios=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
    main=_ALL,
    appendix=_ALL,
    covered=LEARNERS,
)

"""What an audit knows: the evidence, its diagnosis, and rows that are similar."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Attributions, Positions, Truths
from propopt.explaining.diagnosis import diagnosed
from propopt.explaining.evidence import AuditEvidence
from propopt.explaining.explainers.own_value import OwnValues, own_values_of
from propopt.explaining.hypotheses import Diagnosis
from propopt.explaining.nearest_front import NearestFront
from propopt.explaining.sources import PATHS
from propopt.explaining.targets import coordinates_of, sizes_of
from propopt.laws.background import N_BACKGROUND, Background
from propopt.losses import PairwiseRobustness
from propopt.losses.graphs.points import Graph, knn_graph


SIZEABLE: Final = 0.1
"""Of the mean over rows of the largest |value|: smaller ones count as small."""

_OTHER_NEIGHBORS: Final = (4, 16)
"""How many are tried besides."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Audited(AuditEvidence):
    """The evidence of an audit, and what follows from its diagnosis."""

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Why the values are what they are."""
        return diagnosed(self)

    @property
    def is_owned(self) -> bool:
        """Whether all of them are values of somebody that is known."""
        return self.diagnosis.verdict in ("right", "depends on settings")

    @property
    def compared(self) -> str:
        """What kind of values they are compared with."""
        return "exact" if self.is_exact else "drawn"

    @cached_property
    def aim(self) -> Attributions:
        """What signs and ranks should be: of slips, those of whose values they are."""
        found = self.diagnosis if self.is_exact else None
        if found is None or found.values is None or found.verdict != "wrong":
            return self.E
        return found.values

    @property
    def whose(self) -> str:
        """For which rows the exact values are, where others could be exact, too."""
        if not self.is_exact:
            return ""
        if not self.is_given:
            return " for the audited rows"
        return "" if self.diagnosis.verdict == "right" else " for the background"

    @property
    def is_of_paths(self) -> bool:
        """Whether they are path-dependent values, which have no background."""
        return self.is_exact and self.diagnosis.whose == PATHS

    @property
    def is_wrong(self) -> bool:
        """Whether a cause is known that makes them wrong."""
        return self.is_exact and self.diagnosis.verdict == "wrong"

    @property
    def is_of_lime(self) -> bool:
        """Whether they are weights of LIME, which need not add up."""
        return self.is_exact and self.diagnosis.cause == "LIME weights"

    @cached_property
    def cut(self) -> float:
        """|Value| from which it is sizeable."""
        return SIZEABLE * float(np.abs(self.W).max(axis=1).mean())

    def changed_signs(self, V: Attributions, W: Attributions) -> float:
        """The share of sizeable values of either whose sign is another."""
        sizeable = np.maximum(np.abs(V), np.abs(W)) > self.cut
        other = sizeable & (np.sign(V) != np.sign(W))
        return float(other.sum()) / max(int(sizeable.sum()), 1)

    @property
    def used(self) -> Truths:
        """Which columns the model asks for, where it is read, (D,)."""
        assert self.read is not None, "it is read"
        read = self.read
        kept = read.paths[read.values != 0.0] if len(read.values) else read.paths
        columns: Positions = np.concatenate(
            [np.zeros(0, np.intp), *(family.column for family in read.factors)]
        )
        used = np.zeros(read.n_columns, bool)
        used[columns[np.unique(kept[kept >= 0])]] = True
        return used

    # ---- rows that are similar

    def similar(self, count: int | None = None) -> Graph:
        """The given graph, or nearest neighbours in columns over their deviations."""
        if self.graph is not None:
            return self.graph
        sizes = sizes_of(self.function, self._reference, "std")
        where = coordinates_of(self.function, self.points, sizes)
        asked = self.n_neighbors if count is None else count
        return knn_graph(where, min(asked, len(where) - 1))

    @cached_property
    def own_values(self) -> OwnValues:
        """G: what each column contributes by its value alone."""
        rows = Background.of_points(self.background, self.weights)
        if self.read is None:  # the model is asked
            rows = rows.thinned(N_BACKGROUND)
        return own_values_of(self.function, self.points, self.labels, rows)

    def front(self, aim: Attributions, count: int | None = None) -> NearestFront:
        """That of values, where so many neighbours are similar, beside own values."""
        G = self.own_values.explanation.attributions
        return NearestFront(aim, PairwiseRobustness(self.similar(count), beside=G))

    @cached_property
    def own(self) -> NearestFront:
        """That of what came: what less roughness costs."""
        return self.front(self.W)

    @cached_property
    def true(self) -> NearestFront:
        """That of the exact values."""
        return NearestFront(self.E, self.own.robust)

    @cached_property
    def others(self) -> dict[int, NearestFront]:
        """The same with fewer and with more neighbours; none of a given graph."""
        counts = () if self.graph is not None else _OTHER_NEIGHBORS
        fronts = {count: self.front(self.W, count) for count in counts}
        return {count: one for count, one in fronts.items() if one.plain > 0.0}

    @property
    def has_neighbours(self) -> bool:
        """Whether there are similar rows, which differ in something."""
        return len(self.W) > 2 and self.own.plain > 0.0

    @property
    def is_compared(self) -> bool:
        """Whether something of that could go."""
        return self.has_neighbours and self.own.is_rough

    @cached_property
    def is_ours(self) -> bool:
        """Whether what came, made complete, is the exact values."""
        nearest = self.true.completed(self.W)
        return bool((np.abs(nearest - self.E) <= self.tolerance).all())

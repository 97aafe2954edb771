"""Pairs of similar rows, and the pairs whose attributions differ most."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Edges, largest_first, quotient
from propopt.base.document import minus, share_text, signed_text
from propopt.base.row_sample import RowSample
from propopt.losses.graphs.distances import pair_distances
from propopt.losses.graphs.points import knn_graph
from propopt.proofs.optimum import Optimum


_NEAREST: Final = 8
"""The number of nearest rows, for explanations without a graph."""

WORST_PAIRS: Final = 10


@final
@dataclass(frozen=True, eq=False)
class Neighbours:
    """Pairs of similar rows with their similarities and distances."""

    edges: Edges  # (E, 2)
    similarity: Array  # (E,)
    distance: Array  # (E,): between the values of rows; zero without values
    source: str  # the definition of similarity, half a sentence

    @classmethod
    def of(cls, best: Optimum) -> Neighbours | None:
        """Neighbours by the graph of the objective, or else by the values of rows."""
        graph = graph_of(best)
        X = _standardised(best)
        if graph is not None and graph.n_edges:
            apart = np.zeros(graph.n_edges)
            if X is not None:
                apart = pair_distances(X, graph.edges)
            return cls(graph.edges, graph.strengths, apart, f"{graph.kind} graph")
        return cls.by_values(best)

    @classmethod
    def by_values(cls, best: Optimum) -> Neighbours | None:
        """Nearest rows by their values; None if the explanation has no values.

        In a large table they are the nearest within a sample of its rows.
        """
        X = _standardised(best)
        if X is None or len(X) < 2:
            return None
        sample = RowSample.of(len(X))
        k = min(_NEAREST, len(sample.rows) - 1)
        words = f"{k} nearest, in standard deviations of the columns"
        if not sample.is_whole:
            words += f", within {sample.in_words()}"
        graph = knn_graph(X[sample.rows], k)
        edges = sample.rows[graph.edges]
        return cls(edges, graph.strengths, pair_distances(X, edges), words)

    def at(self, rows: Collection[int]) -> Neighbours:
        """The pairs that contain one of these rows."""
        has_row = np.zeros(int(self.edges.max(initial=-1)) + 1, bool)
        has_row[[n for n in rows if n < len(has_row)]] = True
        pairs = has_row[self.edges].any(axis=1)
        return Neighbours(
            self.edges[pairs], self.similarity[pairs], self.distance[pairs], self.source
        )

    def nearest(self, row: int, among: Collection[int] | None = None) -> int | None:
        """The most similar row, by distance among equally similar ones."""
        at = np.flatnonzero((self.edges == row).any(axis=1))
        ends = self.edges[at].sum(axis=1) - row
        if among is not None:
            allowed = np.isin(ends, list(among))
            at = at[allowed]
            ends = ends[allowed]
        if not len(at):
            return None
        return int(ends[np.lexsort((ends, self.distance[at], -self.similarity[at]))[0]])

    def differences(self, W: Array) -> Array:
        """The squared difference S ‖w_n − w_n'‖² of each pair, (E,)."""
        i, j = self.edges.T
        parts = [
            ((W[i[block]] - W[j[block]]) ** 2).sum(axis=1)
            for block in np.array_split(
                np.arange(len(i)), len(i) * W.shape[1] // 10**6 + 1
            )
        ]
        return self.similarity * np.concatenate(parts)

    def worst(self, best: Optimum) -> tuple[pd.DataFrame, list[int]]:
        """The pairs that differ most as a table, and the rows in these pairs."""
        W = best.attributions
        cost = self.differences(W)
        total = float(cost.sum()) or 1.0
        order = largest_first(cost)[:WORST_PAIRS]
        names = best.features
        lines: list[dict[str, Any]] = []
        rows: list[int] = []
        for (n, m), share in zip(
            self.edges[order].tolist(), (cost[order] / total).tolist(), strict=True
        ):
            j = int(np.abs(W[n] - W[m]).argmax())
            cells = [named(W[x, j], best.value_of(x, j)) for x in (n, m)]
            pair = [str(best.labels.row(x)) for x in (n, m)]
            lines.append(
                {
                    "row": pair[0],
                    "similar row": pair[1],
                    "share of differences": share_text(share),
                    "feature": str(names[j]),
                    "attribution": cells[0],
                    "of the similar row": cells[1],
                }
            )
            rows += [n, m]
        return pd.DataFrame(lines).set_index("row"), list(dict.fromkeys(rows))


def graph_of(best: Optimum) -> Any:
    """The graph over rows of a loss in the objective; None without such a loss."""
    program = best.program
    losses = () if program is None else program.all_losses
    graphs = (getattr(loss, "graph", None) for loss in losses)
    N = best.shape[0]
    return next(
        (g for g, loss in zip(graphs, losses, strict=True) if g and loss.n_points == N),
        None,
    )


def _standardised(best: Optimum) -> Array | None:
    """Standardised values of rows, with missing ones at the mean of their column."""
    X = best.points
    if X is None:
        return None
    observed = np.ma.masked_invalid(X)
    centred = (observed - observed.mean(axis=0)).filled(0.0)
    return quotient(centred, np.sqrt((centred**2).mean(axis=0)))


def named(attribution: float, value: str) -> str:
    """An attribution with its sign, and the value of its column."""
    number = signed_text(attribution)
    return f"{number} (value {minus(value)})" if value else number

"""Losses as numbers that can be read: shares kept and removed, and units of output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import pandas as pd

from propopt._typing import Attributions
from propopt.graphs.base import Graph
from propopt.losses import (
    MaxDifferenceRobustness,
    Objective,
    PairwiseRobustness,
    Program,
    SharedRobustness,
)
from propopt.losses.base import read_for
from propopt.losses.entries import counted
from propopt.output.csv import write_csv
from propopt.output.html import html_card, html_table
from propopt.output.text import in_html, in_percent, printable
from propopt.results.conclusions.ends import Ends, matched_target
from propopt.results.conclusions.saved_shares import read_shares, write_shares
from propopt.results.conclusions.words import plural
from propopt.results.conclusions.zeros import root_mean_square, without_dust


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


@final
@dataclass(frozen=True, kw_only=True)
class Shares:
    r"""What an explanation keeps of faithfulness, and removes of every other loss.

    Faithfulness kept is 1 − loss(W)/loss(W_∞), where W_∞ is the most faithful of the
    attributions that cost the other losses nothing: the mean of G over what is
    connected, or zero. It is 1 at G, 0 at W_∞, and may be negative for explanations
    that are not optimal. Of any other loss 1 − loss(W)/loss(G) is removed; of a largest
    squared difference the share is that of the difference.

    Parameters
    ----------
    kept : mapping
        By faithfulness loss; −∞ where G costs nothing at either end and W does.
    removed : mapping
        By other loss; NaN where the loss had no weight, or nothing was there at G.
    losses : mapping
        The losses themselves.
    differences, target_differences : mapping
        By loss with a graph of points the root mean square difference between
        neighbours, √(Σ S‖w_n − w_n'‖²/(D ΣS)), of W and of G, in units of attributions.
    rms, target_rms : float
        Root mean squares of W and of G; NaN where there is no G.
    n_zero, size : int
        How many attributions are zero, to 1e-12 of the largest, and how many there are;
        of documents those of words that they have.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[0.0, 1.0], [2.0, 1.0]])
    >>> best = po.solve(
    ...     po.GradientMatching(G) + 0.25 * po.PairwiseRobustness(po.chain_graph(2))
    ... )
    >>> shares = best.shares()
    >>> print(*shares.in_words(), sep="\n")
    75.0 % of faithfulness kept (gradient_matching)
    75.0 % of pairwise_robustness removed
    neighbours differ by 0.707 (target: 1.41), pairwise_robustness
    rms attribution 1.06 (target: 1.22)
    """

    kept: Mapping[str, float]
    removed: Mapping[str, float]
    losses: Mapping[str, float]
    differences: Mapping[str, float] = field(default_factory=dict)
    target_differences: Mapping[str, float] = field(default_factory=dict)
    rms: float
    target_rms: float
    n_zero: int
    size: int

    def to_frame(self) -> pd.DataFrame:
        """One row per number: ``measure``, ``of``, ``value`` and that of the target."""
        rows = [
            *(("faithfulness kept", k, v, 1.0) for k, v in self.kept.items()),
            *(("removed", k, v, 0.0) for k, v in self.removed.items()),
            *(
                ("difference between neighbours", k, v, self._target_difference(k))
                for k, v in self.differences.items()
            ),
            ("rms", "attributions", self.rms, self.target_rms),
            ("share not zero", "attributions", 1.0 - self.n_zero / self.size, math.nan),
        ]
        return pd.DataFrame(rows, columns=["measure", "of", "value", "at_target"])

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`; what is not defined is an empty cell."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file with one JSON header, where null is not defined.

        Raises
        ------
        InvalidInput
            If the folder is not there.
        """
        write_shares(path, vars(self))

    @classmethod
    def load(cls, path: str | Path) -> Shares:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        return cls(**read_shares(path))

    def in_words(self) -> Iterator[str]:
        """A line for each number."""
        for name, share in self.kept.items():
            yield f"{in_percent(share)} of faithfulness kept ({name})"
        for name, share in self.removed.items():
            yield f"{in_percent(share)} of {name} removed"
        for name, difference in self.differences.items():
            yield (
                f"neighbours differ by {difference:.3g}"
                f"{_beside(self._target_difference(name))}, {name}"
            )
        yield f"rms attribution {self.rms:.3g}{_beside(self.target_rms)}"
        if self.n_zero:
            yield f"{self.n_zero:,} of {plural(self.size, 'attribution')} are zero"

    def __repr__(self) -> str:
        return f"Shares({'; '.join(map(printable, self.in_words()))})"

    def _repr_html_(self) -> str:
        rows = [
            [in_html(name), f"{self.losses[name]:.6g}", in_percent(share), noun]
            for noun, shares in (("kept", self.kept), ("removed", self.removed))
            for name, share in shares.items()
        ]
        table = html_table(("loss", "value", "share", "of it"), rows)
        return html_card([table, "<br>".join(map(in_html, self.in_words()))])

    def _target_difference(self, name: str) -> float:
        return self.target_differences.get(name, math.nan)


def shares_of(
    explanation: Explanation, objective: Objective | None, program: Program
) -> Shares:
    """See :meth:`propopt.Explanation.shares`."""
    own = read_for(
        program.all_losses, explanation, f"{explanation.method}: attributions"
    )
    losses = {loss.name: loss.value_at(own) for loss in program.all_losses}
    ends = Ends.of(program, weighted(explanation, objective, program))
    shares = ends.shares(losses)
    G = matched_target(program)
    support = counted(program)
    here = np.ones(own.shape, bool) if support is None else support.mask
    return Shares(
        kept={name: share for name, share in shares.items() if name in ends.faithful},
        removed={
            name: share for name, share in shares.items() if name not in ends.faithful
        },
        losses=losses,
        differences=dict(_differences(program, own)),
        target_differences={} if G is None else dict(_differences(program, G)),
        rms=root_mean_square(own[here]),
        target_rms=math.nan if G is None else root_mean_square(G[here]),
        n_zero=int(np.count_nonzero(without_dust(own)[here] == 0.0)),
        size=int(np.count_nonzero(here)),
    )


def weighted(
    explanation: Explanation, objective: Objective | None, program: Program
) -> set[str]:
    """Losses that had a weight above zero, or a bound."""
    weights = explanation.weights if objective is None else objective.weights
    bounded = {bound.loss.name for bound in program.bounds}
    return {name for name, weight in weights.items() if weight > 0.0} | bounded


def _beside(target: float) -> str:
    """What stands behind a number of W, where that of G is known."""
    return "" if math.isnan(target) else f" (target: {target:.3g})"


def difference(graph: Graph, W: Attributions) -> float:
    """√(Σ S‖w_n − w_n'‖²/(D ΣS)): of neighbours, per feature; NaN without neighbours.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> round(difference(po.chain_graph(2), np.array([[0.0, 0.0], [3.0, 3.0]])), 9)
    3.0
    """
    if not graph.total > 0.0:
        return math.nan
    return math.sqrt(graph.differences.energy(W) / (W.shape[1] * graph.total))


def _differences(program: Program, W: Attributions) -> Iterator[tuple[str, float]]:
    """Between neighbours, by the name of a loss; over shared words of these alone."""
    for name, graph in _graphs(program):
        yield name, difference(graph, W)
    for loss in program.all_losses:
        if isinstance(loss, SharedRobustness):
            total = loss.entry_graph.total
            yield loss.name, math.sqrt(loss.value_at(W) / total) if total else math.nan


def _graphs(program: Program) -> Iterator[tuple[str, Graph]]:
    """The graphs of points among the losses, each once, by the name of a loss."""
    seen: list[Graph] = []
    for loss in program.all_losses:
        match loss:
            case PairwiseRobustness(graph=graph) | MaxDifferenceRobustness(graph=graph):
                if not any(graph is other for other in seen):
                    seen.append(graph)
                    yield loss.name, graph
            case _:
                pass

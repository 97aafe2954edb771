"""Losses as kept and removed shares, between the ends of the trade-off curve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

import numpy as np
import pandas as pd

from propopt.base.declared import field
from propopt.base.document import (
    Document,
    Table,
    cell_text,
    share_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, printable
from propopt.losses import (
    Objective,
    Program,
)
from propopt.losses.algebra import aligned_attributions
from propopt.losses.restricted import (
    entry_support,
)
from propopt.proofs.ideal_nadir import (
    IdealNadir,
    matched_target,
    neighbour_differences,
    weighted,
)
from propopt.proofs.near_optimal import rounded_to_zero
from propopt.proofs.optimum import Optimum, root_mean_square
from propopt.results.result import Result


# ---- Losses as shares, and in units of the output


@final
class Shares(Result, kind="propopt shares", noun="saved shares", version=3, eq=True):
    r"""How much faithfulness is kept, and how much of other losses is removed.

    The kept share is 1 − loss(W)/loss(W_∞), where W_∞ are the most faithful of the
    attributions with other losses of zero: the mean of G over connected rows, or zero.
    It is 1 at G, 0 at W_∞, and may be negative for explanations that are not optimal.
    The removed share of any other loss is 1 − loss(W)/loss(G); for a largest squared
    difference it is the share of the difference.

    Parameters
    ----------
    faithfulness_kept : mapping
        For each faithfulness loss; −∞ if it is zero at both ends and positive at W.
    removed : mapping
        For each other loss; NaN if it had no weight or is zero at G.
    losses : mapping
        The values of all losses.
    differences, target_differences : mapping
        For each loss with a graph of points, the root mean square difference between
        neighbours, √(Σ S‖w_n − w_n'‖²/(D ΣS)), of W and of G, in units of attributions.
    rms, target_rms : float
        Root mean squares of W and of G; NaN without G.
    n_zero, size : int
        The number of attributions that are zero, to 1e-12 of the largest, and of all;
        for documents, only words that occur in them count.
    quantity : Quantity, optional
        The explained quantity.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[0.0, 1.0], [2.0, 1.0]])
    >>> best = po.solve(
    ...     po.GradientMatching(G)
    ...     + 0.25 * po.PairwiseRobustness(po.graphs.chain_graph(2))
    ... )
    >>> shares = best.shares()
    >>> shares
    Shares(75% kept, 75% of pairwise_robustness removed)
    """

    faithfulness_kept: Mapping[str, float] = field(missing=True, infinite=True)
    removed: Mapping[str, float] = field(missing=True, infinite=True)
    losses: Mapping[str, float] = field(missing=True, infinite=True)
    differences: Mapping[str, float] = field(factory=dict, low=0.0, missing=True)
    target_differences: Mapping[str, float] = field(factory=dict, low=0.0, missing=True)
    rms: float = field(low=0.0, missing=True)
    target_rms: float = field(low=0.0, missing=True)
    n_zero: int = field(low=0)
    size: int = field(low=1)
    quantity: Quantity | None = None

    def validate(self) -> None:
        """Raise an error for shares of unknown losses, and for too many zeros."""
        if self.faithfulness_kept.keys() & self.removed.keys():
            raise InvalidInput(
                "removed: some losses have a share of faithfulness as well"
            )
        if (
            not self.faithfulness_kept.keys() | self.removed.keys()
            <= self.losses.keys()
        ):
            raise InvalidInput("losses: not of all shares")
        if not self.target_differences.keys() <= self.differences.keys():
            raise InvalidInput("target_differences: also of losses without differences")
        if self.n_zero > self.size:
            raise InvalidInput("n_zero: more than there are attributions")

    def to_frame(self) -> pd.DataFrame:
        """The shares as a table, with the values at the target for comparison.

        Columns are ``measure``, ``of`` (the loss), ``value`` and ``at_target``.
        """
        at_target = self.target_differences
        rows = [
            *(
                ("faithfulness kept", k, v, 1.0)
                for k, v in self.faithfulness_kept.items()
            ),
            *(("removed", k, v, 0.0) for k, v in self.removed.items()),
            *(
                ("difference between neighbours", k, v, at_target.get(k, math.nan))
                for k, v in self.differences.items()
            ),
            ("rms", "attributions", self.rms, self.target_rms),
            ("nonzero", "attributions", 1.0 - self.n_zero / self.size, math.nan),
        ]
        return pd.DataFrame(rows, columns=["measure", "of", "value", "at_target"])

    def __repr__(self) -> str:
        words = [f"{share_text(x)} kept" for x in self.faithfulness_kept.values()]
        words += [f"{share_text(x)} of {k} removed" for k, x in self.removed.items()]
        return f"Shares({', '.join(map(printable, words))})"

    def document(self) -> Document:
        """Summarise the shares, and the sizes of attributions."""
        sizes = {"rms", "difference between neighbours"}
        rows = [
            [x, of, *map(cell_text if x in sizes else share_text, values)]
            for x, of, *values in self.to_frame().itertuples(index=False)
        ]
        table = Table.of(("measure", "of", "value", "at target"), rows)
        losses = pd.DataFrame({"loss": pd.Series(self.losses)})
        return Document(
            title=title_of("Shares of losses", self.quantity),
            subtitle=subtitle_of(self.quantity, f"{self.size:,} attributions"),
            blocks=[table],
            chapters=lambda: [table_chapter("Losses", losses)],
        )


def shares_of(
    explanation: Optimum, objective: Objective | None, program: Program
) -> Shares:
    """Compute the result of :meth:`propopt.results.Explanation.shares`."""
    array = aligned_attributions(
        program.all_losses, explanation, f"{explanation.method}: attributions"
    )
    losses = {loss.name: loss.value_at(array) for loss in program.all_losses}
    ends = IdealNadir.of(program, weighted(explanation, objective, program))
    shares = ends.shares(losses)
    G = matched_target(program)
    support = entry_support(program)
    here = np.ones(array.shape, bool) if support is None else support.mask
    return Shares(
        quantity=explanation.quantity,
        faithfulness_kept={
            name: share for name, share in shares.items() if name in ends.faithful
        },
        removed={
            name: share for name, share in shares.items() if name not in ends.faithful
        },
        losses=losses,
        differences=dict(neighbour_differences(program, array)),
        target_differences={} if G is None else dict(neighbour_differences(program, G)),
        rms=root_mean_square(array[here]),
        target_rms=math.nan if G is None else root_mean_square(G[here]),
        n_zero=int(np.count_nonzero(rounded_to_zero(array)[here] == 0.0)),
        size=int(np.count_nonzero(here)),
    )

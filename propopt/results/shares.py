"""Losses as kept and removed shares, between the ends of the trade-off curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import pandas as pd

from propopt.base.declared import field
from propopt.base.document import (
    Document,
    Table,
    share_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.losses import (
    Objective,
    Program,
)
from propopt.proofs.ideal_nadir import IdealNadir, weighted
from propopt.proofs.optimum import Optimum
from propopt.results.result import Result


# ---- Losses as shares, and in units of the output


@final
class Shares(Result, kind="propopt shares", noun="saved shares", version=4, eq=True):
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
    >>> round(best.shares().removed["pairwise_robustness"], 2)
    0.75
    """

    faithfulness_kept: Mapping[str, float] = field(missing=True, infinite=True)
    removed: Mapping[str, float] = field(missing=True, infinite=True)
    losses: Mapping[str, float] = field(missing=True, infinite=True)
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

    def to_frame(self) -> pd.DataFrame:
        """The shares as a table, with the values at the target for comparison.

        Columns are ``measure``, ``of`` (the loss), ``value`` and ``at_target``.
        """
        rows = [("faithfulness kept", *x, 1.0) for x in self.faithfulness_kept.items()]
        rows += [("removed", *x, 0.0) for x in self.removed.items()]
        return pd.DataFrame(rows, columns=["measure", "of", "value", "at_target"])

    def document(self) -> Document:
        """The shares as a table."""
        table = self.to_frame()
        table["value"] = table["value"].map(share_text)
        table["at_target"] = table["at_target"].map(share_text)
        losses = pd.DataFrame({"loss": pd.Series(self.losses)})
        return Document(
            title=title_of("Shares of losses", self.quantity),
            subtitle=subtitle_of(self.quantity, f"{len(self.losses)} losses"),
            blocks=[Table(table.rename(columns={"at_target": "at target"}))],
            chapters=lambda: [table_chapter("Losses", losses)],
        )


def shares_of(
    explanation: Optimum,
    objective: Objective | None,
    program: Program,
    losses: Mapping[str, float],  # of the program
) -> Shares:
    """Compute the result of :meth:`propopt.results.Explanation.shares`."""
    ends = IdealNadir.of(program, weighted(explanation, objective, program))
    removed = ends.shares(losses)
    faithful = {name: removed.pop(name) for name in [*removed] if name in ends.faithful}
    return Shares(
        quantity=explanation.quantity,
        faithfulness_kept=faithful,
        removed=removed,
        losses=losses,
    )

"""Losses as retained and removed shares, between the ends of the trade-off curve."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import final

import numpy as np
import pandas as pd

from propopt.base.declared import field
from propopt.base.document import Document, Finding, Table
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity, for_quantity, in_percent, plural, printable
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
class Shares(Result, kind="propopt shares", noun="saved shares", version=2, eq=True):
    r"""How much faithfulness is retained, and how much of other losses is removed.

    The retained share is 1 − loss(W)/loss(W_∞), where W_∞ are the most faithful of the
    attributions with other losses of zero: the mean of G over connected rows, or zero.
    It is 1 at G, 0 at W_∞, and may be negative for explanations that are not optimal.
    The removed share of any other loss is 1 − loss(W)/loss(G); for a largest squared
    difference it is the share of the difference.

    Parameters
    ----------
    retained : mapping
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
    >>> print(shares.document().title)
    75.0 % of faithfulness retained, 75.0 % of pairwise_robustness removed
    """

    retained: Mapping[str, float] = field(missing=True, infinite=True)
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
        if self.retained.keys() & self.removed.keys():
            raise InvalidInput("removed: some losses have a retained share as well")
        if not self.retained.keys() | self.removed.keys() <= self.losses.keys():
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
            *(("faithfulness retained", k, v, 1.0) for k, v in self.retained.items()),
            *(("removed", k, v, 0.0) for k, v in self.removed.items()),
            *(
                ("difference between neighbours", k, v, at_target.get(k, math.nan))
                for k, v in self.differences.items()
            ),
            ("rms", "attributions", self.rms, self.target_rms),
            ("share not zero", "attributions", 1.0 - self.n_zero / self.size, math.nan),
        ]
        return pd.DataFrame(rows, columns=["measure", "of", "value", "at_target"])

    def _shares_in_words(self) -> Iterator[str]:
        """The shares in words, as far as they are defined."""
        for share in filter(math.isfinite, self.retained.values()):
            yield f"{in_percent(share)} of faithfulness retained"
        for name, share in self.removed.items():
            if math.isfinite(share):
                yield f"{in_percent(share)} of {name} removed"

    def _sizes_in_words(self) -> Iterator[str]:
        for name, difference in self.differences.items():
            yield (
                f"neighbours differ by {difference:.3g}"
                f"{_at_target(self.target_differences.get(name, math.nan))}, {name}"
            )
        yield f"rms attribution {self.rms:.3g}{_at_target(self.target_rms)}"
        if self.n_zero:
            yield f"{self.n_zero:,} of {plural(self.size, 'attribution')} are zero"

    def __repr__(self) -> str:
        words = [*self._shares_in_words(), *self._sizes_in_words()]
        return f"Shares({printable('; '.join(words))})"

    def document(self) -> Document:
        """Summarise the shares, and the sizes of attributions."""
        rows = [
            *([k, in_percent(x), ""] for k, x in self.retained.items()),
            *([k, "", in_percent(x)] for k, x in self.removed.items()),
        ]
        rows = [[*row, f"{self.losses[row[0]]:.6g}"] for row in rows]
        return Document(
            title=(", ".join(self._shares_in_words()) or "No share is defined")
            + for_quantity(self.quantity),
            subtitle="retained: 100 % at the target itself; removed: 100 % at the "
            "least possible loss",
            blocks=[
                Table.of(("loss", "retained", "removed", "value"), rows),
                *map(Finding, self._sizes_in_words()),
            ],
            trust=[
                Finding("computed from the losses here and at both ends of the curve"),
                Finding("a dash marks an undefined share", "assumed"),
            ],
            chapters=self._table,
            settings={"attributions": f"{self.size:,}"},
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
        retained={
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


def _at_target(target: float) -> str:
    """The number of the target G in parentheses, if known."""
    return "" if math.isnan(target) else f" (target: {target:.3g})"

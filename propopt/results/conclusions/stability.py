"""Whether conclusions survive another weight, another graph, another seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import pandas as pd

from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.losses import Program
from propopt.losses.entries import counted
from propopt.output.csv import write_csv
from propopt.output.html import html_card, html_table
from propopt.output.text import in_html, printable
from propopt.results.conclusions.agreement import MEASURES, Agreement
from propopt.results.conclusions.saved_stability import STABILITY_FILE
from propopt.results.conclusions.variations import Solve, families, optima_for


if TYPE_CHECKING:
    from propopt.results.explanation import Explanation


TOP = 3
"""Features of a row whose set is compared."""


@final
@dataclass(frozen=True, kw_only=True)
class ConclusionStability:
    """How much of what an explanation says survives when its settings vary.

    Parameters
    ----------
    agreements : tuple of Agreement
        For each thing that varied: the weight of each loss from a half to two, half and
        twice as many neighbours at the same weight times mean degree, the draws of the
        target.
    k : int
        How many of the largest attributions of a row are compared as a set.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[1.0, -2.0], [1.2, 1.5], [0.9, -1.0]])
    >>> best = po.solve(
    ...     po.GradientMatching(G) + 0.25 * po.PairwiseRobustness(po.chain_graph(3))
    ... )
    >>> print(*best.stability().in_words())
    weight of pairwise_robustness: signs 83.3 %, top 1 66.7 %, ranks 0.33
    """

    agreements: tuple[Agreement, ...]
    k: int

    @property
    def signs(self) -> float:
        """The least share of signs that survive."""
        return self._least("signs")

    @property
    def weighted_signs(self) -> float:
        """The least share of Σ|w| whose signs survive."""
        return self._least("weighted_signs")

    @property
    def top(self) -> float:
        """The least overlap of the k largest."""
        return self._least("top")

    @property
    def ranks(self) -> float:
        """The least rank correlation."""
        return self._least("ranks")

    def to_frame(self) -> pd.DataFrame:
        """One row for each thing that varied, with what breaks each measure most."""
        columns = [f"{measure}_breaks_at" for measure in MEASURES]
        rows = [
            [
                x.varied,
                *(getattr(x, m) for m in MEASURES),
                *(x.worst[m] for m in MEASURES),
            ]
            for x in self.agreements
        ]
        return pd.DataFrame(rows, columns=["varied", *MEASURES, *columns])

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_frame`."""
        write_csv(path, self.to_frame(), names_of_rows=False)

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file with one JSON header.

        Raises
        ------
        InvalidInput
            If the folder is not there.
        """
        STABILITY_FILE.write(path, asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> ConclusionStability:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InvalidInput
            If the file is another one, or holds what no such result has.
        FileNotFoundError
            If there is none.
        """
        fields = STABILITY_FILE.read(path)
        agreements = tuple(Agreement(**fields) for fields in fields["agreements"])
        return cls(agreements=agreements, k=fields["k"])

    def in_words(self) -> Iterator[str]:
        """A line for each thing that varied."""
        for x in self.agreements:
            yield (
                f"{x.varied}: signs {x.signs:.1%}, top {self.k} {x.top:.1%}, "
                f"ranks {x.ranks:.2f}"
            ).replace("%", " %")

    def __repr__(self) -> str:
        return f"ConclusionStability({'; '.join(map(printable, self.in_words()))})"

    def _repr_html_(self) -> str:
        head = ("varied", "signs", "of Σ|w|", f"top {self.k}", "ranks")
        rows = [
            [
                in_html(x.varied),
                f"{x.signs:.1%}",
                f"{x.weighted_signs:.1%}",
                f"{x.top:.1%}",
                f"{x.ranks:.2f}",
            ]
            for x in self.agreements
        ]
        breaks = "<br>".join(
            in_html(f"{x.varied}: signs break most at {x.worst['signs']}")
            for x in self.agreements
        )
        return html_card([html_table(head, rows), breaks])

    def _least(self, measure: str) -> float:
        values: list[float] = [getattr(x, measure) for x in self.agreements]
        return min(values)


def stability_of(
    best: Explanation, program: Program, k: int, solve: Solve | None
) -> ConclusionStability:
    """See :meth:`propopt.Explanation.stability`.

    Raises
    ------
    InvalidInput
        If nothing varies.
    Refused
        If there is no closed form, and no solver was given.
    """
    W = best.attributions
    top = min(read_count(k, "k"), max(W.shape[1] - 1, 1))
    support = counted(program)
    present = None if support is None else support.mask
    varied = families(best, program, optima_for(best, program, solve))
    agreements = tuple(
        Agreement.of(name, W, settings, top, present) for name, settings in varied
    )
    if not agreements:
        raise InvalidInput(
            "stability: expected a weighted loss beside faithfulness, or a target with "
            f"draws, got {', '.join(best.weights) or best.method!r}: nothing varies"
        )
    return ConclusionStability(agreements=agreements, k=top)

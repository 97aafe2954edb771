"""Interaction values: contributions split into single features and pairs of them.

With the Shapley interaction values I_uv of a row and its Shapley values φ, the matrix

    M_uv = I_uv/2 for u ≠ v,   M_uu = φ_u − Σ_v I_uv/2

is that of the package ``shap``: its rows add up to φ, and all of it to f(x) minus the
base. A pair u, v has the two entries M_uv = M_vu, so that its part is I_uv.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions, Values, largest_first, quotient
from propopt.base.cards import N_ON_CARD
from propopt.base.charts import Grid
from propopt.base.checks import read_count
from propopt.base.declared import field
from propopt.base.document import (
    Document,
    Fact,
    Facts,
    Span,
    Table,
    shape_text,
    share_text,
    subtitle_of,
    table_chapter,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.plots.drawing import draw
from propopt.plots.style import Axes
from propopt.proofs.optimum import Optimum
from propopt.results.clear import unit_of
from propopt.results.result import Result
from propopt.tables.frames import Labels


_ADDS_UP: Final = 1e-4
"""Allowed difference of sums, relative to all parts: models round to 32 bits."""


@final
class Interactions(
    Result,
    kind="propopt interaction values",
    noun="saved interaction values",
    version=1,
):
    """Contributions of rows, split into single features and pairs of features.

    Parameters
    ----------
    values : array (N, D, D)
        M: half of the interaction value of each pair, I_uv/2, and on the diagonal what
        is left of the contribution, φ_u − Σ_v I_uv/2. The rows of M add up to
        contributions, and contributions to the prediction minus the base.
    base_value : array (N,)
        The mean of f over the background, in each row.
    prediction : array (N,)
        f(x).
    background : str
        The background rows, in words.
    labels : Labels
        Names of rows and features.
    quantity : Quantity, optional
        The explained quantity.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> M = np.array([[[1.0, 0.5], [0.5, -1.0]]])
    >>> pairs = po.results.Interactions(
    ...     values=M,
    ...     base_value=np.zeros(1),
    ...     prediction=np.ones(1),
    ...     background="one row",
    ... )
    >>> pairs.contributions, pairs.pairs[0, 0, 1]
    (array([[ 1.5, -0.5]]), np.float64(1.0))
    >>> pairs.from_pairs
    array([0.33333333, 0.33333333])
    """

    values: Array = field("N D D", nonempty=True)
    base_value: Values = field("N")
    prediction: Values = field("N")
    background: str
    labels: Labels = Labels()
    quantity: Quantity | None = None

    def validate(self) -> None:
        """Raise an error for pairs without symmetry, or a row that does not add up."""
        self.labels.check(self.shape, "labels")
        if (self.values != self.values.transpose(0, 2, 1)).any():
            raise InvalidInput("values: expected symmetric matrices")
        with np.errstate(over="ignore", invalid="ignore"):
            total = self.prediction - self.base_value
            errors = np.abs(self.values.sum(axis=(1, 2)) - total)
            sizes = np.abs(self.values).sum(axis=(1, 2))
            allowed = sizes + np.abs(self.prediction) + np.abs(self.base_value)
            wrong = ~(errors <= _ADDS_UP * allowed)
        if wrong.any():
            n = int(wrong.argmax())
            raise InvalidInput(
                f"values: those of row {self.labels.row(n)!r} add up to "
                f"{self.values[n].sum():.6g}, but prediction − base_value is "
                f"{total[n]:.6g}"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers N of rows and D of features."""
        N, D, _ = self.values.shape
        return N, D

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.labels.feature_names(self.shape[1])

    @property
    def contributions(self) -> Attributions:
        """φ, the Shapley values of the features, (N, D)."""
        return self.values.sum(axis=2)

    @property
    def pairs(self) -> Array:
        """I, the whole interaction values of pairs, with a zero diagonal (N, D, D)."""
        return 2.0 * np.where(np.eye(self.shape[1], dtype=bool), 0.0, self.values)

    @property
    def from_pairs(self) -> Values:
        """The share of the contributions of each feature that comes from pairs, (D,).

        Σ_n |h_nd| / Σ_n (|M_ndd| + |h_nd|) with h_nd = Σ_v I_dv/2, 0 without a
        contribution.
        """
        of_pairs, alone = self._sizes
        return quotient(of_pairs, of_pairs + alone)

    @property
    def _sizes(self) -> tuple[Values, Values]:
        """Sums over the rows of |h| and of |M_ndd|, (D,)."""
        alone = np.diagonal(self.values, axis1=1, axis2=2)
        of_pairs = np.abs(self.contributions - alone)
        return of_pairs.sum(axis=0), np.abs(alone).sum(axis=0)

    def to_frame(self) -> pd.DataFrame:
        """The pairs as a table, the largest first: the upper triangle of the matrix.

        ``mean_size`` is the mean of |I_uv| over the rows, and ``share_of_squares`` is
        the share of I_uv² in the sum of the squares of all parts of the rows, those of
        pairs and M_dd, the parts of single features.
        """
        first, second = np.triu_indices(self.shape[1], 1)
        mean_size = np.array(2.0 * np.abs(self.values).mean(axis=0)[first, second])
        squares = (self.values**2).sum(axis=0)
        of_pairs = 4.0 * squares[first, second]
        total = of_pairs.sum() + np.trace(squares)
        order = largest_first(mean_size)
        names = np.array(self.features, dtype=object)
        return pd.DataFrame(
            {
                "feature": names[first[order]],
                "with": names[second[order]],
                "mean_size": mean_size[order],
                "share_of_squares": of_pairs[order] / (total or 1.0),
            }
        )

    def document(self) -> Document:
        """The share of each feature that comes from pairs, and the largest pairs."""
        of_pairs, alone = self._sizes
        features = pd.DataFrame(
            {
                "mean size": np.abs(self.contributions).mean(axis=0),
                "from pairs": self.from_pairs,
            },
            index=pd.Index(self.features, name="feature"),
        ).sort_values("mean size", ascending=False, kind="stable")
        pairs = self.to_frame().rename(columns=lambda name: name.replace("_", " "))
        total = of_pairs.sum() + alone.sum()
        return Document(
            title=title_of("Interactions", self.quantity),
            subtitle=subtitle_of(
                self.quantity,
                shape_text(*self.shape),
                f"contributions, in {unit_of(self.quantity)}",
            ),
            blocks=[
                *(_largest(x) for x in (features, pairs) if len(x) > 0),
                Facts([Fact("from pairs", of_pairs.sum() / (total or 1.0), "%")]),
            ],
            settings={"background": self.background},
            chapters=lambda: [
                table_chapter("All features", features),
                table_chapter("All pairs", pairs),
            ],
        )

    def plot(
        self, row: Hashable = None, *, n_features: int = 10, ax: Axes | None = None
    ) -> Axes:
        """Draw the matrix as a heat map: of one row, or mean sizes over all rows.

        Parameters
        ----------
        row : label or int, optional
            The row's label in the index of the inputs, or its position if they had no
            index; by default the means of |M| over all rows.
        n_features : int
            The number of features to draw, those with the largest entries.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If the row does not exist.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> M = np.array([[[1.0, 0.5], [0.5, -1.0]]])
        >>> pairs = po.results.Interactions(
        ...     values=M, base_value=np.zeros(1), prediction=np.ones(1), background=""
        ... )
        >>> [label.get_text() for label in pairs.plot().get_yticklabels()]
        ['x0', 'x1']
        """
        N, _ = self.shape
        matrix = np.abs(self.values).mean(axis=0)
        what = "mean size"
        if row is not None:
            matrix = self.values[self.labels.position(row, N)]
            what = f"row {row}"
        sizes = np.abs(matrix).sum(axis=1)
        most = read_count(n_features, "n_features")
        chosen = largest_first(sizes)[:most]
        names = [self.features[d] for d in chosen]
        caption = f"{what}, in {unit_of(self.quantity)}: pairs have two halves"
        cells = matrix[np.ix_(chosen, chosen)]
        return draw(Grid(rows=names, columns=names, values=cells, caption=caption), ax)


def interactions_of(
    best: Optimum, phi: Attributions, pairs: Array, background: str
) -> Interactions:
    """Split contributions (N, D) of an explanation by pairs (N, D, D)."""
    assert best.base_value is not None, "contributions have a base"
    assert best.prediction is not None, "and predictions"
    made = Interactions(
        values=with_halves(pairs, phi),
        base_value=best.base_value,
        prediction=best.prediction,
        background=background,
        labels=best.labels,
        quantity=best.quantity,
    )
    made.validate()
    return made


def with_halves(pairs: Array, phi: Attributions) -> Array:
    """M of interactions I (N, D, D) and Shapley values φ (N, D)."""
    values = pairs / 2.0
    each = np.arange(values.shape[1])
    values[:, each, each] = phi - values.sum(axis=2)
    return values


def _largest(table: pd.DataFrame) -> Table:
    """The first rows of a sorted table, with shares as words."""
    largest = table[:N_ON_CARD]
    share = table.columns[-1]
    return Table(
        largest.assign(**{share: largest[share].map(share_text)}),
        total=len(table),
        bars={"mean size": [*map(Span.of, largest["mean size"])]},
    )

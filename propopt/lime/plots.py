"""Plots of LIME's limits: coefficients of one row, and their paths over widths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from propopt.base.charts import Lines, Steps
from propopt.base.checks import read_count
from propopt.base.errors import Refused
from propopt.base.suggestions import suggests_arguments
from propopt.lime.explanation import RUN_LEVEL, LimeExplanation, normal_interval
from propopt.plots.drawing import draw
from propopt.plots.style import Axes, shortened
from propopt.tables.frames import position_of


@suggests_arguments
@dataclass(frozen=True, repr=False)
class LimePlots(ABC):
    """Plots of LIME's coefficients, as ``limit.plot``: call it, or one of its methods.

    Parameters
    ----------
    explanation : LimeRows or LimeDocuments
        What is drawn.
    """

    explanation: LimeExplanation

    width: ClassVar[str]  # what widths of paths are

    @abstractmethod
    def names(self, n: int) -> Sequence[str]:
        """The names of the features of row n."""

    @suggests_arguments
    def __call__(
        self,
        row: Hashable | None = None,
        *,
        n_features: int = 10,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the coefficients of one row or text, with the range of single runs.

        Bars are the limits of coefficients. Lines across them show where 95 % of single
        runs of ``explanation.n_samples`` fall: around the mean of such runs, which the
        ridge, and the row itself as a sample, move away from the limit.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first.
        n_features : int
            The number of columns or words to draw, the largest.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If there is no such row.
        Refused
            If LIME has no coefficients for the document.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> lime = po.lime.limits(lambda X: X[:, 0] - X[:, 1], X[:1], data=X)
        >>> axes = lime.plot(n_features=2)
        >>> len(axes.get_yticklabels())
        2
        """
        lime = self.explanation
        n = lime.position(row)
        record = lime.records[n]
        if not record.has_coefficients:
            reason = f"LIME has no coefficients for this document: {record.reason}"
            raise Refused(f"plot: {reason}")
        frame = lime.top(read_count(n_features, "n_features"), lime.row_names[n])
        means = frame["expected"].to_numpy(float)
        ends = normal_interval(means, frame["single_run_sd"].to_numpy(float))
        order = [j for j, _ in record.sorted_by_size()[: len(frame)]]
        runs = f"{100.0 * RUN_LEVEL:g}% of runs of {lime.n_samples:,} samples"
        caption = f"LIME coefficient, {lime.explained_in_words}"
        if np.isfinite(ends).any():
            caption += f"\nlines: {runs}"
        return draw(
            Steps(
                names=[record.names[j] for j in order],
                parts=record.coefficients[order],
                intervals=ends,
                caption=caption,
                title=self.title(n),
            ),
            ax,
        )

    @suggests_arguments
    def path(
        self,
        row: Hashable | None = None,
        *,
        widths: ArrayLike | None = None,
        features: Sequence[str | int] | None = None,
        n_features: int = 6,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the coefficients of one row or text over kernel widths.

        A dotted line marks the width of the law, and circles the widths at which a
        coefficient changes its sign. Bands show two standard errors of estimated
        coefficients of words; all other curves are exact.

        Parameters
        ----------
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first.
        widths : array (M,), optional
            Kernel widths, or bandwidths ν of a text; by default 50 around that of the
            law.
        features : sequence of str or int, optional
            The columns or words to draw; by default the ``n_features`` with the largest
            coefficient at any width.
        n_features : int
            The number of columns or words if ``features`` is not given.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If there is no such row, column or word.
        Refused
            If coefficients of columns are not exact, the explanation was loaded, or
            LIME has no coefficients for the document.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
        >>> axes = po.lime.limits(tree, X[:1], data=X).plot.path()
        >>> axes.get_xscale()
        'log'
        """
        lime = self.explanation
        count = read_count(n_features, "n_features")
        path = lime.path(row, widths)
        n = lime.position(row)
        names = self.names(n)
        sizes = np.abs(path.coefficients).max(axis=0)
        largest = np.argsort(-sizes, kind="stable")[:count]
        shown = [j for j in largest.tolist() if sizes[j] > 0.0]
        if features is not None:
            shown = [position_of(one, "features", names) for one in features]
        grid = path.widths
        lines = {names[j]: (grid, path.coefficients[:, j]) for j in shown}
        bands = {}
        if path.standard_errors is not None:
            reach = 2.0 * path.standard_errors
            bands = {
                name: (beta - reach[:, j], beta + reach[:, j])
                for j, (name, (_, beta)) in zip(shown, lines.items(), strict=True)
            }
        turns = np.concatenate([np.zeros(0), *(path.sign_changes[j] for j in shown)])
        inside = turns[(turns >= grid[0]) & (turns <= grid[-1])]
        marks = (
            {"width of the law": path.law_width} if np.isfinite(path.law_width) else {}
        )
        return draw(
            Lines(
                lines=lines,
                bands=bands,
                points=[("", width, 0.0) for width in inside.tolist()],
                marks=marks,
                axes=(self.width, f"LIME coefficient,\n{self.explained}"),
                scales=("log", "linear"),
                title=self.title(n),
            ),
            ax,
        )

    @property
    def explained(self) -> str:
        """The explained output; "prediction" if only the model has a name."""
        quantity = self.explanation.quantity
        if quantity is not None and quantity.is_by_name:
            return "prediction"
        return shortened(self.explanation.explained_in_words, 40)

    def title(self, n: int) -> str:
        """The explained output and the row, with f and the surrogate there."""
        lime = self.explanation
        row = shortened(f"{lime.nouns[0]} {lime.row_names[n]}", 30)
        value = f"{self.explained} is {lime.values[n]:.4g}"
        return f"{row}: {value}, LIME's sum {lime.at_row[n]:.4g}"

"""Plots of LIME's limits: coefficients of one row, and their paths over widths."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, largest_first
from propopt.base.charts import Lines, Steps
from propopt.base.checks import read_count
from propopt.base.errors import Refused
from propopt.base.html import HighlightedText, highlighted
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.lime.explanation import LimeExplanation
from propopt.plots.drawing import draw
from propopt.plots.style import Axes, shortened
from propopt.results.explanation_plots import positions_of
from propopt.tables.frames import position_of


@final
@suggests_arguments
@dataclass(frozen=True, repr=False)
class LimePlots:
    """Plots of LIME's coefficients, as ``limit.plot``: call it, or one of its methods.

    Parameters
    ----------
    explanation : LimeRows or LimeDocuments
        What is drawn.
    """

    explanation: LimeExplanation

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
        ends, runs = lime.run_intervals(frame)
        order = [j for j, _ in record.sorted_by_size()[: len(frame)]]
        caption = f"LIME coefficient, {lime.explained_in_words}"
        if np.isfinite(ends).any():
            caption += f"\nlines: {runs} of {lime.n_samples:,} samples"
        return draw(
            Steps(
                names=[record.names[j] for j in order],
                parts=record.coefficients[order],
                intervals=ends,
                caption=caption,
                title=self._title(n),
            ),
            ax,
        )

    @suggests_arguments
    def path(
        self,
        row: Hashable | None = None,
        *,
        widths: ArrayLike | None = None,
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
        n_features : int
            The number of columns or words to draw, those with the largest coefficient
            at any width.
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
        names = self._names(n)
        sizes = np.abs(path.coefficients).max(axis=0)
        largest = largest_first(sizes)[:count]
        shown = [j for j in largest.tolist() if sizes[j] > 0.0]
        grid = path.widths
        ends = list[tuple[Array, Array]]()
        if path.standard_errors is not None:
            reach = 2.0 * path.standard_errors
            ends = [(path.coefficients - reach, path.coefficients + reach)]
        turns = np.concatenate([np.zeros(0), *(path.sign_changes[j] for j in shown)])
        inside = turns[(turns >= grid[0]) & (turns <= grid[-1])]
        words = "bandwidth ν; the package's kernel width is 100 ν"
        return draw(
            Lines(
                lines={names[j]: (grid, path.coefficients[:, j]) for j in shown},
                bands={names[j]: (x[:, j], y[:, j]) for x, y in ends for j in shown},
                points=[("", width, 0.0) for width in inside.tolist()],
                marks={"width of the law": path.law_width},
                name="kernel width" if self._is_of_rows else words,
                scales=("log", "linear"),
                title=self._title(n),
                caption=f"LIME coefficient,\n{lime.explained_in_words}",
            ),
            ax,
        )

    @suggests_arguments
    def profile(
        self,
        feature: str | int | None = None,
        row: Hashable | None = None,
        *,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw LIME's mean output around a row, with a column in each of its bins.

        Bars are differences from the mean of the bins other than the row's, by their
        shares: the bar of the row's bin is the coefficient. A column that matters may
        have a small coefficient, if the bin of the row is close to that mean.

        Parameters
        ----------
        feature : str or int, optional
            The column; by default the one with the largest coefficient.
        row : label or int, optional
            Its name in the index of X, or its position where X had no names; by default
            the first.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If there is no such row or column.
        Refused
            For words, and if the explanation was loaded, its law weights by distance,
            or nearly all shared samples have a weight of zero at the row.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
        >>> axes = po.lime.limits(tree, X[:1], data=X).plot.profile()
        >>> len(axes.patches)
        4
        """
        lime: Any = self.explanation
        if not self._is_of_rows:
            raise Refused("profile: words have no bins")
        n = lime.position(row)
        beta = lime.coefficients[n]
        names = self._names(n)
        j = int(np.abs(beta).argmax())
        if feature is not None:
            j = position_of(feature, "feature", names)
        subject = lime.require_subject("profile")
        point = subject.points[[n]]
        column = subject.law.columns[j]
        means = subject.profiles(point)[j][0]
        row_bin = int(column.bin_index(point[:, j])[0])
        bins = list(column.bins)
        bins[row_bin] += " (the row)"
        others = means[row_bin] - beta[j]
        mean = f"mean {lime.explained_in_words} with {names[j]} in each bin"
        return draw(
            Steps(
                names=bins,
                parts=means - others,
                caption=f"{mean}, minus its mean in the other bins, {others:.4g}",
                title=f"{self._title(n)}\n{names[j]}: coefficient {beta[j]:.4g}",
            ),
            ax,
        )

    @suggests_arguments
    def text(
        self,
        rows: Sequence[Hashable] | None = None,
        *,
        n_words: int = 10,
    ) -> HighlightedText:
        """Show the texts with their words in shades of their coefficients.

        The look is that of :meth:`propopt.results.ExplanationPlots.text`.

        Parameters
        ----------
        rows : sequence of label or int, optional
            The documents to show; by default the first ten.
        n_words : int
            The number of coefficients listed below each text, the largest.

        Returns
        -------
        HighlightedText
            The texts as HTML, shown by notebooks; ``to_html`` writes a page.

        Raises
        ------
        InvalidInput
            If a row does not exist.
        Refused
            For the columns of a table.

        Examples
        --------
        >>> import propopt as po
        >>> lime = po.lime.text_limits(
        ...     lambda texts: [1.0 * ("good" in text) for text in texts],
        ...     ["a <good> day"],
        ... )
        >>> "&lt;<span style=" in lime.plot.text().html
        True
        """
        lime: Any = self.explanation
        if self._is_of_rows:
            raise Refused("text: the columns of a table are not in a text")
        shown = positions_of(rows, lime.labels, len(lime.records))
        return highlighted(
            [lime.marked_text(n) for n in shown],
            f"LIME, infinite samples: {plural(len(lime.records), 'document')}",
            lime.units,
            [lime.law_in_words],
            read_count(n_words, "n_words"),
        )

    @property
    def _is_of_rows(self) -> bool:
        return self.explanation.nouns[0] == "row"

    def _names(self, n: int) -> Sequence[str]:
        """The columns, without the bins of row n, or the words of document n."""
        lime = self.explanation
        if self._is_of_rows:
            return lime.labels.feature_names(lime.shape[1])
        return lime.records[n].names

    def _title(self, n: int) -> str:
        lime = self.explanation
        return shortened(f"{lime.nouns[0]} {lime.row_names[n]}", 30)

"""Plots of explanations: ``best.plot()`` and ``best.plot.scatter("bmi")``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from propopt.base.arrays import Values, largest_first
from propopt.base.charts import Grid, Scatter, Steps, Swarm
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.html import HighlightedText, MarkedText, highlighted
from propopt.base.row_sample import RowSample
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import plural
from propopt.plots.drawing import draw
from propopt.plots.style import LONGEST, Axes
from propopt.proofs.optimum import Optimum
from propopt.results.certain import NearOptimalConclusions
from propopt.results.clear import Clear
from propopt.tables.documents import (
    MarkedWords,
    PatternWords,
    TextDocument,
    VectoriserWords,
    WordRule,
    read_texts,
)
from propopt.tables.frames import Labels, position_of
from propopt.tables.imported import AttributionsLike, read_attributions


if TYPE_CHECKING:
    from propopt.functions.images import ImageShape


_RULES: Final[tuple[WordRule, ...]] = (
    PatternWords(),
    MarkedWords(),
    VectoriserWords(),
)
"""The default rules that split a text into words; the best match is used."""

_SHOWN: Final = 10
"""Documents that are shown unless rows are given."""


@final
@suggests_arguments
@dataclass(frozen=True, repr=False)
class ExplanationPlots:
    """Plots of an explanation, as ``best.plot``: call it, or one of its methods.

    ``best.plot()`` is the beeswarm plot of many rows, and the waterfall plot of one.
    Each method takes ``ax``, returns it, and shows nothing by itself.

    Parameters
    ----------
    explanation : Explanation
        What is drawn.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.diag([1.0, 2.0, 3.0])))
    >>> axes = best.plot()
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['x2', 'x1', 'x0']
    """

    explanation: Optimum

    @suggests_arguments
    def __call__(self, n_features: int = 10, *, ax: Axes | None = None) -> Axes:
        """Draw the plot that fits: a beeswarm of many rows, a waterfall of one row.

        A beeswarm has a dot for each row and feature, coloured by the value of the
        feature. Features are sorted by their mean size; those beyond the first are left
        out. Values have colours from low to high by their ranks. Categories have a
        colour each, with their names below the dots, and missing values are hollow.
        Dots are moved up and down without randomness. For more than 2,000 rows a sample
        of 2,000 is drawn, and its size is below the axis.

        Parameters
        ----------
        n_features : int
            The number of features to draw, those with the largest mean |w|.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> best = po.solve(1.0 * po.GradientMatching(np.diag([1.0, 2.0, 3.0])))
        >>> axes = best.plot(n_features=2)
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['x2', 'x1']
        """
        best = self.explanation
        if best.shape[0] == 1:
            return self.waterfall(n_features=n_features, ax=ax)
        most = read_count(n_features, "n_features")
        order = largest_first(np.abs(best.attributions).mean(axis=0))[:most]
        sample = RowSample.of(best.shape[0])
        some = np.ix_(sample.rows, order)
        caption = best.units_in_words
        if not sample.is_whole:
            caption += f"\n{sample.in_words()}"
        return draw(
            Swarm(
                names=[best.features[j] for j in order],
                attributions=best.attributions[some],
                values=None if best.points is None else best.points[some],
                categories=best.categories,
                caption=caption,
            ),
            ax,
        )

    @suggests_arguments
    def waterfall(
        self,
        row: Hashable = None,
        *,
        n_features: int = 10,
        certain: NearOptimalConclusions | Clear | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the attributions of one row as steps from the base to the prediction.

        The largest is on top, with the value of its feature. Features beyond the first
        ``n_features`` share one bar with the sum of their attributions. Lines across
        the bars are intervals of two standard errors. Slopes do not add up to a
        prediction: their bars start at zero.

        Parameters
        ----------
        row : label or int, optional
            The row's label in the index of the inputs, or its position if they had no
            index. Not needed for a single row.
        n_features : int
            The number of features with separate bars.
        certain : Clear or NearOptimalConclusions, optional
            The result of ``best.clear()`` or ``best.certain()``: bars with an uncertain
            sign are hatched.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If the row does not exist, or if no row is given for several rows.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> best = po.solve(1.0 * po.GradientMatching(np.array([[3.0, -1.0, 0.5]])))
        >>> axes = best.plot.waterfall(0)
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['x0', 'x1', 'x2']
        """
        best = self.explanation
        n = 0
        if row is not None or best.shape[0] > 1:
            n = best.labels.position(row, best.shape[0])
        w = best.attributions[n]
        order = largest_first(np.abs(w))[: read_count(n_features, "n_features")]
        order = order[w[order] != 0.0] if w.any() else order
        names = [self._named(n, j) for j in order]
        parts = w[order]
        signs = np.ones(best.shape) if certain is None else certain.signs
        if signs.shape != best.shape:
            raise InvalidInput(
                f"certain: expected signs of shape {best.shape}, got {signs.shape}; "
                "give what certain() or clear() of this explanation returned"
            )
        hatched = signs[n, order] == 0
        adjective = "clear" if isinstance(certain, Clear) else "certain"
        errors = best.standard_errors
        reach = order * np.nan if errors is None else 2.0 * errors[n, order]
        if rest := len(w) - len(order):
            names.append("1 other" if rest == 1 else f"{rest} others")
            parts = np.append(parts, np.delete(w, order).sum())
            hatched = np.append(hatched, False)
            reach = np.append(reach, np.nan)
        caption = best.units_in_words
        start = None
        marks = {}
        if best.units == "output" and best.base_value is not None:
            start = float(best.base_value[n])
            marks = {"base": start, "prediction": start + float(parts.sum())}
            quantity = best.quantity
            caption = "output" if quantity is None else quantity.in_words()
        return draw(
            Steps(
                names=names,
                parts=parts,
                start=start,
                intervals=np.stack([parts - reach, parts + reach], axis=1),
                hatched=hatched,
                hatching=f"sign not {adjective}",
                marks=marks,
                caption=caption,
                title=f"row {best.labels.row(n)}",
            ),
            ax,
        )

    @suggests_arguments
    def scatter(
        self,
        feature: str | int,
        *,
        color: str | int | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the attributions of one feature against its values.

        Categories have a place each, in the order of their codes; missing values are on
        the left.

        Parameters
        ----------
        feature : str or int
            The name of the feature, or its position.
        color : str or int, optional
            Another feature, whose values colour the dots.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If there is no such feature, or the explanation has no values of features.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> best = po.explain(lambda X: X[:, 0] ** 2, X)
        >>> best.plot.scatter(0, color=1).get_xlabel()
        'x0'
        """
        name, x, categories = self._feature(feature)
        colors: dict[str, Any] = {}
        if color is not None:
            keys = ("color_name", "color_values", "color_categories")
            colors = dict(zip(keys, self._feature(color), strict=True))
        best = self.explanation
        sample = RowSample.of(best.shape[0])
        return draw(
            Scatter(
                name=name,
                values=x,
                attributions=best.attributions[sample.rows, best.features.index(name)],
                categories=categories,
                caption=best.units_in_words.replace("each feature", name),
                title="" if sample.is_whole else sample.in_words(),
                **colors,
            ),
            ax,
        )

    @suggests_arguments
    def images(
        self,
        shape: ImageShape,
        rows: Sequence[Hashable] | None = None,
        *,
        next_to: Mapping[str, AttributionsLike] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw attributions as images, next to those of other methods.

        All images share one scale that is white at zero. Channels are summed: the
        colour of a pixel is the first-order effect of one more unit in each of its
        channels.

        Parameters
        ----------
        shape : ImageShape
            The shape of one image, D = C·H·W.
        rows : sequence of label or int, optional
            The images to draw; all by default.
        next_to : mapping, optional
            Attributions (N, D) of the same images by other methods, by their titles.
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InvalidInput
            If the shape does not fit, or other attributions have another shape.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> shape = po.functions.ImageShape(channels=1, height=8, width=8)
        >>> G = np.random.default_rng(0).normal(size=(3, 64))
        >>> best = po.solve(1.0 * po.GradientMatching(G))
        >>> axes = best.plot.images(shape, next_to={"gradient": G})
        >>> [label.get_text() for label in axes.get_xticklabels()]
        ['gradient', 'optimized']
        """
        best = self.explanation
        N = best.shape[0]
        positions = list(range(N))
        if rows is not None:
            positions = [best.labels.position(row, N) for row in rows]
        maps = {**(next_to or {}), best.method: best.attributions}
        columns = []
        for title, given in maps.items():
            W = read_attributions(given, title).values
            if W.shape != best.shape:
                raise InvalidInput(
                    f"next_to: {title}: expected shape {best.shape}, got {W.shape}"
                )
            # channels are summed: one map (H, W) for each image
            columns.append(np.concatenate(shape.images(W[positions]).sum(axis=1)))
        return draw(
            Grid(
                rows=[str(best.labels.row(n)) for n in positions],
                columns=list(maps),
                values=np.hstack(columns),
                tile=(shape.height, shape.width),
                caption=best.units_in_words,
            ),
            ax,
        )

    @suggests_arguments
    def text(
        self,
        documents: Any,
        rows: Sequence[Hashable] | None = None,
        *,
        words: WordRule | None = None,
        n_words: int = 10,
    ) -> HighlightedText:
        """Show texts with their words highlighted in shades of their attributions.

        Words that raise the output are orange and underlined; words that lower it are
        blue and dotted. Larger attributions have stronger shades, on one scale for all
        texts, with a legend. Words below a twentieth of the largest attribution are
        plain, and so are words within two standard errors of zero. A table below each
        text lists the largest attributions.

        Texts are escaped and keep their writing direction. Invisible characters, and
        characters that change the writing direction, appear as escapes.

        Parameters
        ----------
        documents : sequence of str or Series (N,)
            The texts, in the order of the rows.
        rows : sequence of label or int, optional
            The documents to show; by default the first ten.
        words : WordRule, optional
            The rule that splits a text into words. By default that of the package
            ``lime``, with marks or without, or that of vectorisers (lower case),
            whichever matches more attributions. Each text reports attributions without
            a matching word.
        n_words : int
            The number of attributions listed below each text, the largest.

        Returns
        -------
        HighlightedText
            The texts as HTML, shown by notebooks; ``to_html`` writes a page.

        Raises
        ------
        InvalidInput
            If a row does not exist, or if the documents do not match the attributions.

        Examples
        --------
        >>> import pandas as pd, propopt as po
        >>> W = pd.DataFrame([[1.0, -0.5]], columns=["good", "day"])
        >>> best = po.solve(1.0 * po.GradientMatching(W))
        >>> "&lt;<span style=" in best.plot.text(["a <good> day"]).html
        True
        """
        best = self.explanation
        texts = _texts(best, documents)
        columns = {name: j for j, name in enumerate(self.explanation.features)}
        shown = positions_of(rows, best.labels, len(texts))
        candidates = [
            [_marked(best, columns, n, TextDocument.of(texts[n], rule)) for n in shown]
            for rule in (_RULES if words is None else (words,))
        ]
        nearest = min(candidates, key=lambda some: sum(absent for _, absent in some))
        return highlighted(
            [text for text, _ in nearest],
            f"{best.method}: {len(texts)} documents",
            best.units_in_words.replace("each feature", "each word"),
            (),
            read_count(n_words, "n_words"),
        )

    # ---- names, positions and signs

    def _named(self, n: int, j: int) -> str:
        """A feature with its value in row n, unless both are too long for an axis."""
        name = self.explanation.features[j]
        value = self.explanation.value_of(n, j)
        text = f"{name} = {value}"
        return text if value and len(text) <= LONGEST else name

    def _feature(self, feature: str | int) -> tuple[str, Values, Sequence[str]]:
        """The name, the drawn values and the categories of a feature."""
        best = self.explanation
        if best.points is None:
            raise InvalidInput(
                "scatter: the explanation has no values of features; po.explain("
                "model, X) gives one that has them"
            )
        names = self.explanation.features
        j = position_of(feature, "feature", names)
        rows = RowSample.of(best.shape[0]).rows
        return names[j], best.points[rows, j], best.categories.get(names[j], ())


# ---- Texts with their words highlighted


def _texts(result: Optimum, documents: Any) -> list[str]:
    texts, names = read_texts(documents, "documents")
    if len(texts) != result.shape[0]:
        raise InvalidInput(
            f"documents: expected {result.shape[0]}, one for each row of attributions, "
            f"got {len(texts)}"
        )
    labels = result.labels.points
    if names is not None and labels is not None and tuple(names) != tuple(labels):
        raise InvalidInput(
            "documents: expected the index of the attributions, got other labels or "
            "another order"
        )
    return texts


def positions_of(rows: Sequence[Hashable] | None, labels: Labels, n: int) -> list[int]:
    """Positions of the named rows, or of the first ones."""
    if rows is None:
        return list(range(min(n, _SHOWN)))
    return [labels.position(row, n) for row in rows]


def _marked(
    result: Optimum, columns: Mapping[str, int], n: int, document: TextDocument
) -> tuple[MarkedText, float]:
    """A document with the attributions of its words, and the size of the others."""
    indices = np.array([columns.get(word, -1) for word in document.words], np.intp)
    W = np.append(result.attributions[n], np.nan)  # NaN for words without one
    errors = result.standard_errors
    sizes = np.abs(np.delete(W, [*indices, -1]))
    absent = int(np.count_nonzero(sizes))
    words = f"{plural(absent, 'attribution')} of words that are not in the text"
    marked = MarkedText(
        name=f"document {result.labels.row(n)}",
        facts=(f"{words}, up to {sizes.max():.3g}",) if absent else (),
        text=document.text,
        spans=document.spans,
        words=document.words,
        weights=W[indices],
        errors=None if errors is None else np.append(errors[n], np.nan)[indices],
    )
    return marked, float(sizes.sum())

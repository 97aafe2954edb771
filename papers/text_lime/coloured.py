"""A text with its words marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from matplotlib.axes import Axes

from papers.lime.charts import OTHER, RUNS
from propopt.base.arrays import Values
from propopt.base.text import matplotlib_text
from propopt.tables.documents import TextDocument


_WIDTH: Final = 92
"""Letters in a line."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ColouredText:
    """A text whose words stand on colours, by the sign and size of their weights.

    Parameters
    ----------
    title : str
        Above the chart.
    document : TextDocument
        The text.
    weights : array (d,)
        Of its words; 0 for no mark.
    """

    title: str
    document: TextDocument
    weights: Values

    def draw(self, axes: Axes) -> None:
        """In lines; what is against is underlined, too."""
        largest = float(np.abs(self.weights).max()) or 1.0
        line, start = 0, 0
        for word, piece, weight in self._pieces():
            if start + len(piece) > _WIDTH:
                line, start = line + 1, 0
            axes.text(
                start,
                line,
                matplotlib_text(piece),
                family="monospace",
                fontsize=9,
                va="center",
            )
            _mark(axes, (start, line), len(word), weight / largest)
            start += len(piece) + 1
        axes.set_xlim(-1.0, _WIDTH + 1.0)
        axes.set_ylim(max(line + 1.0, 5.0), -1.0)
        axes.set_axis_off()

    def _pieces(self) -> list[tuple[str, str, float]]:
        """Words, the same with what stands between it and the next, and weights."""
        text, spans = self.document.text, self.document.spans
        ends = [*(start for start, _, _ in spans[1:]), len(text)]
        return [
            (self.document.words[j], text[start:end].strip(), float(self.weights[j]))
            for (start, _, j), end in zip(spans, ends, strict=True)
        ]


def _mark(axes: Axes, place: tuple[int, int], length: int, share: float) -> None:
    if share == 0.0:
        return
    x, y = place
    colour = OTHER if share > 0.0 else RUNS
    ends = [x - 0.2, x + length - 0.2]
    low, high = [y - 0.4] * 2, [y + 0.4] * 2
    strength = 0.15 + 0.5 * abs(share)
    axes.fill_between(ends, low, high, color=colour, alpha=strength, lw=0)
    if share < 0.0:
        axes.plot(ends, high, color=colour, lw=2.0)

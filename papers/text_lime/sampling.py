"""How texts are sampled: words are removed at random, wherever they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from matplotlib.axes import Axes

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Study, draw_charts
from papers.lime.charts import RUNS
from papers.lime.statements import BAND
from papers.text_lime.corpus import review_of
from propopt.base.arrays import Mask, Values
from propopt.base.text import matplotlib_text
from propopt.lime.text.word_limits import TextLaw
from propopt.tables.documents import TextDocument


_DRAWS, _SHOWN, _LINE = 20_000, 4, 46
_TEXTS: Final = 500


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SampledTexts:
    """Samples of a text.

    Parameters
    ----------
    document : TextDocument
        The text.
    bits : array of bool (S, d)
        Which words each sample retains.
    left : array (T,)
        How often removed words still stand in each of the first texts.
    """

    document: TextDocument
    bits: Mask
    left: Values


@final
@dataclass(frozen=True, eq=False)
class TextChart:
    """A text, with the words that a sample removes in blue and struck through."""

    title: str
    document: TextDocument
    retained: Mask

    def draw(self, axes: Axes) -> None:
        """In lines."""
        line = start = 0
        for _, _, place in self.document.spans:
            word = self.document.words[place]
            if start + len(word) > _LINE:
                line, start = line + 1, 0
            removed = not self.retained[place]
            axes.text(
                start, line, matplotlib_text(word), family="monospace", fontsize=8,
                va="center", color=RUNS if removed else "black",
            )  # fmt: skip
            if removed:
                axes.plot([start, start + len(word)], [line, line], color=RUNS, lw=1.2)
            start += len(word) + 1
        axes.set_xlim(-1.0, _LINE + 1.0)
        axes.set_ylim(line + 1.0, -1.0)
        axes.set_axis_off()


def sampling_figure() -> PaperFigure:
    """Figure 2."""
    return PaperFigure(
        title="How texts are sampled",
        about="Our review of 20 distinct words and the first four samples: the number "
        "of removed words is uniform, and a removed word goes wherever it stands.",
        panels=(
            Study(
                column="20 words",
                measure=sampled_texts,
                statements=(sizes_are_uniform, every_occurrence_goes),
                charts=_charts,
            ),
        ),
        draw=draw_charts,
    )


def sampled_texts() -> SampledTexts:
    """Of LIME's law, and the texts of the first of them."""
    document = review_of(20)
    bits, _ = TextLaw(0.25).draw(20, _DRAWS, np.random.default_rng(0))
    bits = np.asarray(bits, bool)
    pairs = zip(document.texts(bits[:_TEXTS]), bits, strict=False)
    left = [_removed_in(text, document.words, own) for text, own in pairs]
    return SampledTexts(document=document, bits=bits, left=np.array(left, float))


def sizes_are_uniform(texts: SampledTexts) -> Claim:
    """|z| of 20 shares: a false alarm once in 87,000."""
    removed = texts.bits.shape[1] - texts.bits.sum(axis=1)
    d, n = texts.bits.shape[1], len(texts.bits)
    shares = np.array([np.mean(removed == s) for s in range(1, d + 1)])
    errors = (shares - 1 / d) / np.sqrt((1 / d) * (1 - 1 / d) / n)
    return Claim(
        statement=f"the number of removed words is uniform on 1, …, d: largest |z| of "
        f"its shares in {_DRAWS:,} samples",
        value=float(np.abs(errors).max()),
        sense="<=",
        limit=BAND,
    )


def every_occurrence_goes(texts: SampledTexts) -> Claim:
    """Words that come twice are among them."""
    repeated = int((texts.document.counts > 1).sum())
    return Claim(
        statement="a removed word goes wherever it stands: how often removed words are "
        f"left in {_TEXTS} texts",
        value=float(texts.left.sum()),
        sense="<=",
        limit=0.0,
        note=f"{repeated} of 20 words stand more than once",
    )


def _removed_in(text: str, words: tuple[str, ...], retained: Mask) -> int:
    found = set(re.findall(r"\w+", text))
    return sum(
        word in found for word, own in zip(words, retained, strict=True) if not own
    )


def _charts(texts: SampledTexts) -> tuple[TextChart, ...]:
    everything = np.ones(texts.bits.shape[1], bool)
    samples = [texts.bits[k] for k in range(_SHOWN)]
    return (
        TextChart("the text", texts.document, everything),
        *(
            TextChart(f"sample {k}", texts.document, own)
            for k, own in enumerate(samples, 1)
        ),
    )

"""The interactive part of a report: a trade-off curve with a slider, and two rows.

The slider steps through solved optima. Python draws the page for the first position,
which readers without scripts see.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, largest_first
from propopt.base.checks import largest_entry
from propopt.base.document import (
    Chapter,
    Fact,
    Facts,
    Table,
    cell_text,
    minus,
    share_text,
    signed_text,
)
from propopt.base.row_sample import RowSample
from propopt.base.text import in_html, printable
from propopt.proofs.ideal_nadir import label_of_rest
from propopt.proofs.optimum import Optimum
from propopt.results.report.neighbours import Neighbours


_MAX_BYTES: Final = 800_000
"""The most bytes of rows on a page."""

_BYTES_PER_NUMBER: Final = 12
"""Approximate bytes of an attribution or a value on a page."""

_N_FEATURES: Final = 10
"""Features of a row, those with the largest attributions."""


# ---- A sequence of optima; the slider selects one


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FrontPath:
    """Optima in ascending order of one weight, and other explanations beside them."""

    optima: Sequence[Any]
    loss: str  # the loss with the varying weight
    start: int  # index of the optimum that is shown first
    start_label: str  # its name, such as "knee"
    losses: Sequence[str]  # losses in the summary
    ends: Any = None
    labels: Mapping[str, str] = field(default_factory=dict)  # descriptions of losses
    baselines: Sequence[Any] = ()  # marks: explanations measured on the same losses

    @property
    def control(self) -> str:
        """The label of the slider."""
        return f"Weight of {printable(self.loss)}"

    @property
    def axes(self) -> tuple[str, str]:
        """The loss that grows with the weight, and the loss that falls."""
        faithful = () if self.ends is None else self.ends.faithful
        first = next((x for x in self.losses if x in faithful), self.losses[0])
        others = [x for x in self.losses if x != first]
        return first, self.loss if self.loss in others else others[0]

    def lost_share(self, name: str, loss: float) -> float:
        """The share of faithfulness that is lost, or of another loss that is left."""
        share = math.nan if self.ends is None else self.ends.shares({name: loss})[name]
        return 1.0 - share

    @property
    def has_shares(self) -> bool:
        """Whether both axes show shares of losses."""
        first = self.optima[self.start].losses
        return all(math.isfinite(self.lost_share(x, first[x])) for x in self.axes)

    def position(self, losses: Mapping[str, float]) -> tuple[float, float]:
        """The coordinates of an explanation with these losses."""
        x, y = self.axes
        if not self.has_shares:
            return losses[x], losses[y]
        return self.lost_share(x, losses[x]), self.lost_share(y, losses[y])

    @cached_property
    def curve(self) -> list[tuple[float, float]]:
        """The coordinates of the optima."""
        return [self.position(best.losses) for best in self.optima]

    @property
    def summary(self) -> list[tuple[str, str, float]]:
        """Weight, shares and losses of the first shown optimum: label, text, value."""
        best = self.optima[self.start]
        lines = [
            (f"weight of {self.loss}", f"{w:.3g}", w)
            for w in [best.rates.get(self.loss, math.nan)]
            if math.isfinite(w)
        ]
        for name in self.losses:
            value = best.losses[name]
            share = self.lost_share(name, value)
            if math.isfinite(share):
                rest = 1.0 - share
                lines.append((self.label(name), share_text(rest), rest))
            lines.append((f"loss {name}", cell_text(value), value))
        return lines

    def label(self, name: str) -> str:
        """The label of the share of a loss."""
        return self.labels.get(name, name)

    @property
    def data(self) -> dict[str, Any]:
        """The data of the script."""
        ends = self.ends
        losses = []
        for name in self.losses:
            has_share = ends is not None and math.isfinite(
                self.lost_share(name, self.optima[0].losses[name])
            )
            losses.append(
                {
                    "name": printable(f"loss {name}"),
                    "label": printable(self.label(name)),
                    "values": [best.losses[name] for best in self.optima],
                    "at_target": ends.at_target[name] if has_share else None,
                    "far": ends.far[name] if has_share else None,
                    "is_faithful": ends is not None and name in ends.faithful,
                }
            )
        names = list(self.losses)
        weights = [best.rates.get(self.loss) for best in self.optima]
        return {
            "loss": printable(self.loss),
            "weights": [None if w is None or math.isinf(w) else w for w in weights],
            "start": self.start,
            "losses": losses,
            "axes": [names.index(name) for name in self.axes],
            "shares": self.has_shares,
            "frame": [*self._frame],
            "plane": [_LEFT, _RIGHT - _LEFT, _BOTTOM, _BOTTOM - _TOP],
        }

    @property
    def families(self) -> list[tuple[str, str, int]]:
        """The mark, method and number of the baselines of each method."""
        counts = Counter(one.method for one in self.baselines)
        return [
            (_MARKS[i % len(_MARKS)], method, count)
            for i, (method, count) in enumerate(counts.items())
        ]

    # ---- the curve as SVG

    @cached_property
    def _frame(self) -> tuple[float, float]:
        """The upper ends of both axes, with room for baselines near the curve."""
        xs, ys = zip(*self.curve, strict=True)
        width = max(xs)
        height = max(ys)
        for baseline in self.baselines:
            x, y = self.position(baseline.losses)
            if x <= 1.5 * max(xs) and y <= 1.5 * max(ys):
                width = max(width, x)
                height = max(height, y)
        return 1.05 * width or 1.0, 1.05 * height or 1.0

    def _pixels(self, x: float, y: float) -> tuple[float, float]:
        """SVG coordinates of a point."""
        width, height = self._frame
        return (
            _LEFT + (_RIGHT - _LEFT) * x / width,
            _BOTTOM - (_BOTTOM - _TOP) * y / height,
        )

    @property
    def axis_labels(self) -> tuple[str, str]:
        """The labels of both axes."""
        first, second = self.axes
        if self.has_shares:
            return label_of_rest(self.label(first)), label_of_rest(self.label(second))
        return f"loss {first}", f"loss {second}"

    @property
    def picture(self) -> str:
        """SVG of the axes, the curve, marks of baselines, and the selected point."""
        parts = [*self._ticks()]
        across, up = self.axis_labels
        middle = (_LEFT + _RIGHT) / 2.0
        parts += [
            tag("path", class_="axis", d=f"M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}"),
            tag("text", in_html(across), x=middle, y=345.0, text_anchor="middle"),
            tag("text", in_html(f"↑ {up}"), x=8.0, y=16.0),
        ]
        points = " ".join("{:.1f},{:.1f}".format(*self._pixels(*p)) for p in self.curve)
        parts.append(tag("polyline", class_="front", points=points))
        parts += self._marks()
        cx, cy = self._pixels(*self.position(self.optima[self.start].losses))
        parts.append(tag("circle", class_="here", cx=cx, cy=cy, r=8))
        label = f"Trade-off curve: {up} against {across}"
        return tag("svg", *parts, viewBox="0 0 520 356", role="img", aria_label=label)

    def _ticks(self) -> Iterator[str]:
        width, height = self._frame
        for value in _round_steps(width):
            x, _ = self._pixels(value, 0.0)
            label = in_html(_tick(value, self.has_shares))
            yield tag("text", label, class_="tick", x=x, y=320.0, text_anchor="middle")
        for value in _round_steps(height):
            _, y = self._pixels(0.0, value)
            yield tag("line", class_="grid", x1=_LEFT, x2=_RIGHT, y1=y, y2=y)
            label = in_html(_tick(value, self.has_shares))
            yield tag("text", label, class_="tick", x=64.0, y=y + 4, text_anchor="end")

    def _marks(self) -> Iterator[str]:
        marks = {method: mark for mark, method, _ in self.families}
        for one in self.baselines:
            position = self.position(one.losses)
            if any(np.greater(position, self._frame)):
                continue
            x, y = self._pixels(*position)
            settings = ", ".join(f"{k} {v}" for k, v in one.parameters.items())
            title = tag("title", in_html(f"{one.method} {settings}"))
            yield tag(
                "text",
                marks[one.method],
                title,
                class_="mark",
                x=x,
                y=y + 6.0,
                text_anchor="middle",
            )


# ---- The block


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Explorer:
    """A row to choose next to its most similar row, perhaps with a trade-off curve."""

    title: str
    best: Optimum
    neighbours: Neighbours | None
    lead: str = ""
    front_path: FrontPath | None = None
    first_rows: Sequence[int] = ()  # rows at the top of the list
    reference: Array | None = None  # (N, D): dashed bars, without a trade-off curve
    dashed: str = "Dashed: at the least weight."

    def chapter(self) -> Chapter:
        """The chapter of a page with this block."""
        facts = []
        if len(self.rows) < self._sample.n_rows:
            facts = [Fact("rows shown", len(self.rows), f"of {self._sample.n_rows:,}")]
        if self.neighbours is not None:
            facts.append(Fact("similar rows", self.neighbours.source))
        if self.front_path is None:
            return Chapter(self.title, [Facts(facts), self], self.lead)
        return Chapter("Trade-off", [Facts(facts), self])

    def as_table(self) -> Table:
        """The first row and its most similar one, as columns of a table."""
        pair = self.pair()
        (_, lines), *_ = pair
        columns = {name: [value for _, value, _ in rows] for name, rows in pair}
        index = pd.Index([label for label, *_ in lines], name="feature")
        return Table(pd.DataFrame(columns, index=index), self.lead)

    @cached_property
    def attributions(self) -> Array:
        """Attributions (K, n, D) of the n rows on the page at each position."""
        return np.stack([one.attributions[self.rows] for one in self._optima])

    @property
    def _optima(self) -> Sequence[Any]:
        """The explanation at each position of the slider."""
        return [self.best] if self.front_path is None else self.front_path.optima

    @cached_property
    def rows(self) -> list[int]:
        """Rows on the page: the first ones, their most similar rows, then others.

        The others of a large table are a sample, each with its most similar row.
        """
        others = self._sample.rows.tolist()
        is_whole = self._sample.is_whole
        similar = [n for n in self._most_similar(self.first_rows) if n is not None]
        first = [*dict.fromkeys([*self.first_rows, *similar])]
        if not is_whole:  # those that fit are a sample as well
            others = np.random.default_rng(1).permutation(others).tolist()
            pairs = zip(others, self._most_similar(others), strict=True)
            others = [n for pair in pairs for n in pair if n is not None]
        D = self.best.shape[1]
        numbers = D * (len(self._optima) + (self.reference is not None))
        most = _MAX_BYTES // (_BYTES_PER_NUMBER * (numbers + D))
        rows = [*dict.fromkeys([*first, *others])][: max(most, 2)]
        if is_whole:
            return rows
        return [*rows[: len(first)], *sorted(rows[len(first) :])]

    @property
    def _sample(self) -> RowSample:
        """The rows from which those on the page are taken."""
        return RowSample.of(self.best.shape[0])

    def _most_similar(self, rows: Sequence[int]) -> list[int | None]:
        """The most similar row of each of these rows."""
        if self.neighbours is None:
            return [None] * len(rows)
        neighbours = self.neighbours.at(rows)
        return [neighbours.nearest(n) for n in rows]

    @cached_property
    def names(self) -> list[str]:
        """Names of the rows on the page."""
        return [str(self.best.labels.row(n)) for n in self.rows]

    def similar(self, index: int) -> int | None:
        """The index of the most similar row on the page."""
        if self._on_page is None:
            return None
        nearest = self._on_page.nearest(self.rows[index], self.rows)
        return None if nearest is None else self.rows.index(nearest)

    @cached_property
    def _on_page(self) -> Neighbours | None:
        """The pairs that contain rows on the page."""
        return None if self.neighbours is None else self.neighbours.at(self.rows)

    def pair(self) -> list[tuple[str, list[tuple[str, float, float]]]]:
        """The first row and its most similar one: name, and a line for each feature.

        A line has the feature with its value, the attribution, and the dashed one.
        """
        other = self.similar(0)
        indices = [0] if other is None else [0, other]
        path = self.front_path
        W = self.attributions[0 if path is None else path.start]
        dashed = self._dashed_values
        size = np.abs(dashed[indices]).max(axis=0)
        order = largest_first(size)[:_N_FEATURES]
        features = self.best.features
        return [
            (
                self.names[p],
                [
                    (
                        self._cell(features[j], self.best.value_of(self.rows[p], j)),
                        float(W[p, j]),
                        float(dashed[p, j]),
                    )
                    for j in order.tolist()
                ],
            )
            for p in indices
        ]

    @property
    def _dashed_values(self) -> Array:
        """Values of dashed bars (n, D): the reference, or W at the smallest weight."""
        if self.reference is not None:
            return self.reference[self.rows]
        return self.attributions[0]

    @property
    def has_dashes(self) -> bool:
        """Whether dashed bars are drawn."""
        return self.front_path is not None or self.reference is not None

    @staticmethod
    def _cell(feature: object, value: str) -> str:
        return printable(f"{feature} = {minus(value)}" if value else feature)

    def panels(self) -> list[str]:
        """HTML of the first row and its most similar one, for pages without scripts."""
        pair = self.pair()
        scale = max(
            (abs(x) for _, lines in pair for _, *xs in lines for x in xs), default=0
        )
        return [
            row_picture(label, name, lines, scale or 1.0, self.has_dashes)
            for label, (name, lines) in zip(_PANELS, pair, strict=False)
        ]

    @property
    def data(self) -> str:
        """The data of the script as JSON, without characters that end the element."""
        features = self.best.features
        digits = 8 - math.floor(math.log10(largest_entry(self.attributions) or 1.0))
        digits = min(max(digits, 0), 300)
        rows = []
        for index, n in enumerate(self.rows):
            values = [self.best.value_of(n, j) for j in range(len(features))]
            row = {
                "name": printable(self.names[index]),
                "values": [printable(minus(value)) for value in values],
                "similar": self.similar(index),
                "z": self.attributions[:, index].round(digits).tolist(),
            }
            if self.reference is not None:
                row["was"] = self.reference[n].round(digits).tolist()
            rows.append(row)
        data = {
            "features": [printable(feature) for feature in features],
            "rows": rows,
            "n_features": _N_FEATURES,
            "path": None if self.front_path is None else self.front_path.data,
        }
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        return text.replace("<", "\\u003c")


# ---- HTML and SVG, in the colours of the page, light or dark


def tag(kind: str, *inside: str, **attributes: object) -> str:
    """An element of HTML or SVG around escaped contents.

    Attributes are escaped here. A name may end in _ to avoid a keyword of Python.
    """
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{in_html(_short(value))}"'
        for name, value in attributes.items()
    )
    return f"<{kind}{pairs}>{''.join(inside)}</{kind}>"


def _short(value: object) -> str:
    """A coordinate, rounded to a hundredth."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.2f}".rstrip("0").rstrip(".")
    return str(value)


_MARKS: Final = ("○", "□", "△", "◇", "▽", "☆", "⬠", "✕")
_LEFT = 70.0
_RIGHT = 500.0
_TOP = 34.0
_BOTTOM = 300.0


def _round_steps(end: float) -> list[float]:
    """Four to eight round numbers from zero."""
    power = 10.0 ** math.floor(math.log10(end))
    step = next(s for s in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if end / (s * power) <= 6.0)
    return [step * power * k for k in range(math.floor(end / (step * power)) + 1)]


def _tick(value: float, in_shares: bool) -> str:
    return share_text(value) if in_shares else f"{value:.3g}"


_PANELS: Final = ("Chosen row", "Most similar row")


def row_picture(
    which: str,
    name: str,
    lines: Sequence[tuple[str, float, float]],
    scale: float,
    has_dashes: bool,
) -> str:
    """Bars of one row around zero in the middle, with dashed bars for comparison."""

    def span(value: float, kind: str) -> str:
        left = 50.0 + 50.0 * min(value, 0.0) / scale
        width = 50.0 * abs(value) / scale
        return tag("span", class_=kind, style=f"left:{left:.1f}%;width:{width:.1f}%")

    rows = [
        tag(
            "tr",
            tag("th", in_html(label), scope="row", dir="auto"),
            tag(
                "td",
                span(value, f"bar {'raises' if value > 0.0 else 'lowers'}"),
                span(was, "was") if has_dashes else "",
                tag("span", class_="zero", style="left:50%"),
                class_="plot",
            ),
            tag("td", in_html(signed_text(value)), class_="number"),
        )
        for label, value, was in lines
    ]
    caption = tag("caption", f"{which}: ", tag("bdi", in_html(name)))
    return tag("table", caption, tag("tbody", *rows), class_="bars row")

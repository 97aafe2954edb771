"""The part of a report that moves: the front with a slider, one row and its similar.

Attributions of a shown row are sums Σ_k h_k z_k of few vectors, of which the slider
changes the shares h alone: on an exact front (:mod:`propopt.proofs.fronts`) they are 1
and 1/(1 + c θ_k); elsewhere the slider steps from one solved optimum to the next, and
all shares but one are zero. Python draws the same page for one position, which is what
is seen without scripts.
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

from propopt.base.arrays import Array
from propopt.base.document import Chapter, Finding, Table, cell_text, minus
from propopt.base.text import in_html, percent, printable
from propopt.proofs.fronts import ExactFront
from propopt.proofs.optimum import Optimum
from propopt.results.report.neighbours import Neighbours


POSITIONS_BETWEEN: Final = 40
"""Positions of the slider from one solved weight to the next, on an exact front."""

_ROOM: Final = 800_000
"""Bytes of shown rows on a page."""

_NUMBER: Final = 12
"""Bytes of an attribution on a page, or nearly so."""

_SHOWN: Final = 10
"""Features of a row, those of the largest attributions."""


# ---- A line of optima, of which the slider is at one


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FrontPath:
    """Optima in the order of one weight, and what lies between them."""

    optima: Sequence[Any]
    loss: str  # whose weight varies
    start: int  # the optimum that is shown first
    start_label: str  # what that is, such as "knee"
    losses: Sequence[str]  # those that are told
    ends: Any = None
    words: Mapping[str, str] = field(default_factory=dict)  # of losses, in plain words
    front: ExactFront | None = None  # what lies between, where that is known
    others: Sequence[Any] = ()  # measured on the same losses: marks
    becomes: str = ""  # what explanations are along the line, such as "simpler"

    @property
    def title(self) -> str:
        """Of the part with the slider."""
        return (
            f"What {self.becomes} explanations cost"
            if self.becomes
            else "What it costs"
        )

    @property
    def control(self) -> str:
        """What the slider does."""
        if self.becomes:
            return f"Towards {self.becomes} explanations"
        return f"Weight of {printable(self.loss)}"

    def tables(self, rows: Sequence[int]) -> Array:
        """All z_k (K, n, D), of which attributions of n rows are sums."""
        if self.front is None:
            return np.stack([one.attributions[rows] for one in self.optima])
        return np.concatenate([self.front.far[None, rows], self.front.parts[:, rows]])

    def shares(self, place: int) -> Array:
        """Shares h (K,) of one of the optima."""
        if self.front is None:
            return np.eye(len(self.optima))[place]
        return np.append(1.0, self.front.shares(self.optima[place].weights[self.loss]))

    @property
    def steps(self) -> int:
        """Positions of the slider from one optimum to the next."""
        return 1 if self.front is None else POSITIONS_BETWEEN

    @property
    def axes(self) -> tuple[str, str]:
        """The loss that grows along the line, and the one that falls."""
        faithful = () if self.ends is None else self.ends.faithful
        first = next((x for x in self.losses if x in faithful), self.losses[0])
        others = [x for x in self.losses if x != first]
        return first, self.loss if self.loss in others else others[0]

    def lost_share(self, name: str, loss: float) -> float:
        """What is lost of faithfulness, or is left of differences, as a share."""
        share = math.nan if self.ends is None else self.ends.shares({name: loss})[name]
        return 1.0 - share

    @property
    def has_shares(self) -> bool:
        """Whether both axes are shares."""
        first = self.optima[self.start].losses
        return all(math.isfinite(self.lost_share(x, first[x])) for x in self.axes)

    def place(self, losses: Mapping[str, float]) -> tuple[float, float]:
        """Where it stands on the axes."""
        x, y = self.axes
        if not self.has_shares:
            return losses[x], losses[y]
        return self.lost_share(x, losses[x]), self.lost_share(y, losses[y])

    def curve(self) -> Iterator[tuple[float, float]]:
        """Points of the line, close together where all of it is known."""
        if self.front is None:
            yield from (self.place(best.losses) for best in self.optima)
            return
        low, high = self.front.ends
        for weight in np.geomspace(low, high, 160).tolist():
            yield self.place(self.front.losses(weight))

    @property
    def told(self) -> list[tuple[str, str, float]]:
        """What is said of the one shown first: label, number in words, number."""
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
                label, kept = self.label(name), 1.0 - share
                lines.append((label, f"{100.0 * kept:.1f} %", kept))
            lines.append((f"loss {name}", cell_text(value), value))
        return lines

    def label(self, name: str) -> str:
        """What the share of a loss is called."""
        faithful = self.ends is not None and name in self.ends.faithful
        return f"{self.words.get(name, name)} {'kept' if faithful else 'removed'}"

    @property
    def data(self) -> dict[str, Any]:
        """What the script draws from."""
        front, ends, losses = self.front, self.ends, []
        for name in self.losses:
            form = None
            if front is not None:
                constant, p, P = front.forms[name]
                form = {"constant": constant, "linear": p.tolist()}
                form["quadratic"] = P.tolist()
            own = ends is not None and math.isfinite(
                self.lost_share(name, self.optima[0].losses[name])
            )
            losses.append(
                {
                    "name": printable(f"loss {name}"),
                    "label": printable(self.label(name)),
                    "values": [best.losses[name] for best in self.optima],
                    "near": ends.at_target[name] if own else None,
                    "far": ends.far[name] if own else None,
                    "kept": ends is not None and name in ends.faithful,
                    "form": form,
                }
            )
        names = list(self.losses)
        weights = [best.rates.get(self.loss) for best in self.optima]
        if front is None:
            weights = [None if w is None or math.isinf(w) else w for w in weights]
        return {
            "loss": printable(self.loss),
            "weights": weights,
            "steps": self.steps,
            "start": self.start,
            "theta": None if front is None else front.theta.tolist(),
            "losses": losses,
            "axes": [names.index(name) for name in self.axes],
            "shares": self.has_shares,
            "frame": [*self._frame],
            "plane": [_LEFT, _RIGHT - _LEFT, _BOTTOM, _BOTTOM - _TOP],
        }

    def findings(self) -> Iterator[Finding]:
        """What lies between solved weights, and how well that is known."""
        front = self.front
        if front is None:
            words = f"The slider steps through {len(self.optima)} solved optima; "
            yield Finding(f"{words}nothing is drawn between them.")
            return
        yield Finding(
            f"Between solved weights the front is drawn from {len(front.theta) + 1} "
            "numbers for each attribution.",
            "chosen",
        )
        yield Finding(
            f"At {front.n_proved} points between solved weights, drawn attributions "
            f"err by at most {front.error:.0e} of the largest.",
            "proved",
        )

    @property
    def families(self) -> list[tuple[str, str, int]]:
        """Of other explanations: mark, method, and how many there are of it."""
        counts = Counter(one.method for one in self.others)
        return [
            (_MARKS[i % len(_MARKS)], method, count)
            for i, (method, count) in enumerate(counts.items())
        ]

    # ---- the line as a picture

    @cached_property
    def _frame(self) -> tuple[float, float]:
        """The ends of both axes: around the curve, and what is not far from it."""
        xs, ys = zip(*self.curve(), strict=True)
        wide, high = max(xs), max(ys)
        for one in self.others:
            x, y = self.place(one.losses)
            if x <= 1.5 * max(xs) and y <= 1.5 * max(ys):
                wide, high = max(wide, x), max(high, y)
        return 1.05 * wide or 1.0, 1.05 * high or 1.0

    def _at(self, x: float, y: float) -> tuple[float, float]:
        """Where it is drawn."""
        wide, high = self._frame
        return (
            _LEFT + (_RIGHT - _LEFT) * x / wide,
            _BOTTOM - (_BOTTOM - _TOP) * y / high,
        )

    @property
    def axis_labels(self) -> tuple[str, str]:
        """What the axes show, in words."""
        first, second = (self.words.get(name, name) for name in self.axes)
        if self.has_shares:
            return f"{first} given up", f"{second} left"
        return f"loss {self.axes[0]}", f"loss {self.axes[1]}"

    @property
    def picture(self) -> str:
        """Axes, the curve, marks of others, and the chosen point."""
        parts, words = [*self._ticks()], self.axis_labels
        middle = (_LEFT + _RIGHT) / 2.0
        parts += [
            tag("path", class_="axis", d=f"M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}"),
            tag("text", in_html(words[0]), x=middle, y=345.0, text_anchor="middle"),
            tag("text", in_html(f"↑ {words[1]}"), x=8.0, y=16.0),
        ]
        points = " ".join("{:.1f},{:.1f}".format(*self._at(*p)) for p in self.curve())
        parts.append(tag("polyline", class_="front", points=points))
        parts += self._marks()
        cx, cy = self._at(*self.place(self.optima[self.start].losses))
        parts.append(tag("circle", class_="here", cx=cx, cy=cy, r=8))
        seen = (
            f"The best that can be had: {words[1]} falls as {words[0]} grows. "
            "The table of all weights has the numbers."
        )
        return tag("svg", *parts, viewBox="0 0 520 356", role="img", aria_label=seen)

    def _ticks(self) -> Iterator[str]:
        wide, high = self._frame
        for value in _round_steps(wide):
            x, _ = self._at(value, 0.0)
            label = in_html(_tick(value, self.has_shares))
            yield tag("text", label, class_="tick", x=x, y=320.0, text_anchor="middle")
        for value in _round_steps(high):
            _, y = self._at(0.0, value)
            yield tag("line", class_="grid", x1=_LEFT, x2=_RIGHT, y1=y, y2=y)
            label = in_html(_tick(value, self.has_shares))
            yield tag("text", label, class_="tick", x=64.0, y=y + 4, text_anchor="end")

    def _marks(self) -> Iterator[str]:
        marks = {method: mark for mark, method, _ in self.families}
        for one in self.others:
            px, py = self.place(one.losses)
            if not (px <= self._frame[0] and py <= self._frame[1]):
                continue
            x, y = self._at(px, py)
            settings = ", ".join(f"{k} {v}" for k, v in one.parameters.items())
            title = tag("title", in_html(" ".join([one.method, settings])))
            inside, place = (marks[one.method], title), {"x": x, "y": y + 6.0}
            yield tag("text", *inside, class_="mark", **place, text_anchor="middle")


# ---- The block


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Explorer:
    """Rows that can be chosen, beside the most similar; on a trail with its slider."""

    title: str
    lead: str
    best: Optimum
    neighbours: Neighbours | None
    trail: FrontPath | None = None
    first: Sequence[int] = ()  # rows that are shown before others
    beside: Array | None = None  # (N, D): dashed, where no weight varies
    dashed: str = "Dashed: where the slider is at its left end."

    def chapter(self) -> Chapter:
        """The part of a page with what the rows are and how the front is known."""
        said: list[Finding] = []
        if self.neighbours is not None:
            words = f"Who is similar: {self.neighbours.source}."
            said.append(Finding(words, "chosen"))
        if self.trail is None:
            return Chapter(self.title, [*said, self], self.lead)
        lead = "Each point of the curve is the best possible: nothing is better in one "
        lead += "loss without being worse in another."
        return Chapter(self.trail.title, [*said, *self.trail.findings(), self], lead)

    def as_table(self) -> Table:
        """The first row beside the most similar one, feature by feature."""
        pair = self.pair()
        (_, lines), *_ = pair
        columns = {name: [value for _, value, _ in own] for name, own in pair}
        index = pd.Index([label for label, *_ in lines], name="feature")
        return Table(pd.DataFrame(columns, index=index), self.lead)

    def words(self) -> Iterator[str]:
        """All that it says, for those who look words up."""
        yield from (self.title, self.lead)
        if self.trail is not None:
            yield from (label for label, *_ in self.trail.told)
            yield from (self.trail.title, self.trail.start_label)

    @cached_property
    def tables(self) -> Array:
        """All z_k (K, n, D), of which attributions of the n shown rows are sums."""
        if self.trail is None:
            return np.asarray(self.best.attributions[None, self.shown])
        return self.trail.tables(self.shown)

    def _shares(self, place: int | None) -> Array:
        """Shares h (K,) at one of the optima: by default where the slider starts."""
        if self.trail is None:
            return np.ones(1)
        return self.trail.shares(self.trail.start if place is None else place)

    @cached_property
    def shown(self) -> list[int]:
        """Rows of the page: those asked for, with their similar, then in order."""
        similar = self.neighbours
        near = [] if similar is None else [similar.nearest(n) for n in self.first]
        known = [n for n in near if n is not None]
        shown, room = list[int](), _ROOM
        for n in dict.fromkeys([*self.first, *known, *range(self.best.shape[0])]):
            room -= self._bytes(n)
            if room < 0 and len(shown) > 1:
                break
            shown.append(n)
        return shown

    def _bytes(self, n: int) -> int:
        """About how many a row takes on the page: numbers, values in quotes."""
        D = self.best.shape[1]
        texts = sum(len(self.best.value_of(n, j).encode()) + 3 for j in range(D))
        return texts + _NUMBER * D * (
            len(self._shares(None)) + (self.beside is not None)
        )

    @cached_property
    def names(self) -> list[str]:
        """Names of the shown rows."""
        return [str(self.best.labels.row(n)) for n in self.shown]

    def similar(self, place: int) -> int | None:
        """Which of the shown rows is most similar to one of them, if it is shown."""
        if self.neighbours is None:
            return None
        nearest = self.neighbours.nearest(self.shown[place], self.shown)
        return None if nearest is None else self.shown.index(nearest)

    def pair(self) -> list[tuple[str, list[tuple[str, float, float]]]]:
        """The first row and its similar: name, and by feature value and before."""
        other = self.similar(0)
        places = [0] if other is None else [0, other]
        W, was = np.tensordot(self._shares(None), self.tables, axes=1), self._was
        size = np.abs(was[places]).max(axis=0)
        order = np.argsort(-size, kind="stable")[:_SHOWN]
        features = self.best.labels.feature_names(self.best.shape[1])
        return [
            (
                self.names[p],
                [
                    (
                        self._cell(features[j], self.best.value_of(self.shown[p], j)),
                        float(W[p, j]),
                        float(was[p, j]),
                    )
                    for j in order.tolist()
                ],
            )
            for p in places
        ]

    @property
    def _was(self) -> Array:
        """What dashed lines show (n, D): what it is beside, or at the least weight."""
        if self.beside is not None:
            return np.asarray(self.beside[self.shown])
        return np.asarray(np.tensordot(self._shares(0), self.tables, axes=1))

    @property
    def has_dashes(self) -> bool:
        """Whether there is something that bars are beside."""
        return self.trail is not None or self.beside is not None

    @staticmethod
    def _cell(feature: object, value: str) -> str:
        return printable(f"{feature} = {minus(value)}" if value else feature)

    def panels(self) -> list[str]:
        """The first row and its similar, as they are seen without scripts."""
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
        """What the script draws from, as JSON that no page takes for its own marks."""
        features = self.best.labels.feature_names(self.best.shape[1])
        digits = 8 - math.floor(math.log10(float(np.abs(self.tables).max()) or 1.0))
        digits = min(max(digits, 0), 300)
        rows = []
        for place, n in enumerate(self.shown):
            values = [self.best.value_of(n, j) for j in range(len(features))]
            row = {
                "name": printable(self.names[place]),
                "values": [printable(minus(value)) for value in values],
                "similar": self.similar(place),
                "z": self.tables[:, place].round(digits).tolist(),
            }
            if self.beside is not None:
                row["was"] = self.beside[n].round(digits).tolist()
            rows.append(row)
        told = {
            "features": [printable(feature) for feature in features],
            "rows": rows,
            "shown": _SHOWN,
            "trail": None if self.trail is None else self.trail.data,
        }
        text = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
        return text.replace("<", "\\u003c")


# ---- Pictures of it, whose colours are those of the page, light or dark


def tag(kind: str, *inside: str, **attributes: object) -> str:
    """An element of HTML or SVG around what is escaped already.

    Attributes are escaped; their names may end in _ where Python has such a word.
    """
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{in_html(_short(value))}"'
        for name, value in attributes.items()
    )
    return f"<{kind}{told}>{''.join(inside)}</{kind}>"


def _short(value: object) -> str:
    """A coordinate, to a hundredth."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.2f}".rstrip("0").rstrip(".")
    return str(value)


_MARKS: Final = ("○", "□", "△", "◇", "▽", "☆", "⬠", "✕")
_LEFT, _RIGHT, _TOP, _BOTTOM = 70.0, 500.0, 34.0, 300.0


def _round_steps(end: float) -> list[float]:
    """Four to eight round numbers from zero."""
    power = 10.0 ** math.floor(math.log10(end))
    step = next(s for s in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if end / (s * power) <= 6.0)
    return [step * power * k for k in range(math.floor(end / (step * power)) + 1)]


def _tick(value: float, in_shares: bool) -> str:
    return f"{percent(value)} %" if in_shares else f"{value:.3g}"


_PANELS: Final = ("Chosen row", "The most similar row")


def _signed(value: float) -> str:
    return minus(f"{value:+.3g}") if value else "0"


def row_picture(
    which: str,
    name: str,
    lines: Sequence[tuple[str, float, float]],
    scale: float,
    has_dashes: bool,
) -> str:
    """Bars of one row from zero in the middle, and dashed ones beside them."""

    def span(value: float, kind: str) -> str:
        left = 50.0 + 50.0 * min(value, 0.0) / scale
        wide = 50.0 * abs(value) / scale
        return tag("span", class_=kind, style=f"left:{left:.1f}%;width:{wide:.1f}%")

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
            tag("td", in_html(_signed(value)), class_="number"),
        )
        for label, value, was in lines
    ]
    caption = tag("caption", f"{which}: ", tag("bdi", in_html(name)))
    return tag("table", caption, tag("tbody", *rows), class_="bars row")

"""The picture of the front page: two patients, nearly alike, explained three ways.

Every number in it is computed here when the site is built: the model and its score on
unseen rows, the pair and the rule that chose it, and what three methods say of it.
``python docs/hero.py FILE`` writes the picture as an SVG that stands alone.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import lime.lime_tabular
import numpy as np
import pandas as pd
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import propopt as po


ALIKE = 0.5
"""Of a pair, no measurement differs by more standard deviations,"""
SAME = 0.2
"""and the predictions by no more than this, in log-odds."""
FAR = 1.0
"""What A and B are told of one measurement is red where it differs by more."""


@dataclass(frozen=True)
class Found:
    """What the picture shows; attributions are by method, each (N, D), in log-odds."""

    names: list[str]
    attributions: dict[str, np.ndarray]
    predictions: np.ndarray
    pair: tuple[int, int]
    n_pairs: int
    twins: np.ndarray
    auc: float
    kept: float
    gap: float

    def apart(self, method: str) -> float:
        """Between A and B, the sum over all measurements."""
        one, other = self.pair
        W = self.attributions[method]
        return float(np.abs(W[one] - W[other]).sum())

    def apart_on_average(self, method: str) -> float:
        """The same between each row and its nearest other row, mean over the rows."""
        W = self.attributions[method]
        return float(np.abs(W - W[self.twins]).sum(axis=1).mean())

    @property
    def least(self) -> float:
        """What adds up differs by at least as much as its predictions."""
        return float(np.abs(self.predictions - self.predictions[self.twins]).mean())


def by_lime(model, known: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Of the package with its defaults; seed 0."""
    explainer = lime.lime_tabular.LimeTabularExplainer(
        known.to_numpy(), mode="regression", random_state=0
    )

    def log_odds(X: np.ndarray) -> np.ndarray:
        return model.decision_function(pd.DataFrame(X, columns=known.columns))

    W = np.zeros(rows.shape)
    for n, row in enumerate(rows.to_numpy()):
        found = explainer.explain_instance(row, log_odds, num_features=rows.shape[1])
        for feature, coefficient in found.as_map()[1]:
            W[n, feature] = coefficient
    return W


def find() -> Found:
    """Fit, explain three ways, and choose the pair that SHAP tells most apart."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :10].rename(columns=lambda name: name.removeprefix("mean "))
    X = X.astype("float32").astype(float)  # shap rounds the splits of trees to these
    y = y == 0  # malignant
    known, rows, outcome, unseen = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=0
    )
    model = HistGradientBoostingClassifier(random_state=0).fit(known, outcome)
    f = model.decision_function(rows)

    by_shap = shap.TreeExplainer(model, known)(rows)
    asked = {"contributions": by_shap, "offset": None, "robustness": "knee"}
    best = po.explain(model, rows, data=known, **asked)
    attributions = {
        "LIME": by_lime(model, known, rows),
        "SHAP": by_shap.values,
        "propopt": best.attributions,
    }

    x = ((rows - known.mean()) / known.std()).to_numpy()
    apart = np.abs(x[:, None] - x[None])
    W = attributions["SHAP"]
    alike = (apart.max(axis=2) <= ALIKE) & (np.abs(f[:, None] - f[None]) <= SAME)
    alike &= ~np.eye(len(x), dtype=bool)
    told = np.where(alike, np.abs(W[:, None] - W[None]).sum(axis=2), -1)
    pair = np.unravel_index(told.argmax(), told.shape)
    distances = np.square(apart).sum(axis=2) + np.diag(np.full(len(x), np.inf))
    return Found(
        names=list(X),
        attributions=attributions,
        predictions=f,
        pair=tuple(map(int, pair)),
        n_pairs=int(alike.sum() // 2),
        twins=distances.argmin(axis=1),
        auc=float(roc_auc_score(unseen, f)),
        kept=best.shares().faithfulness_kept["gradient_matching"],
        gap=float(best.gap),
    )


# ---- the drawing: text, lines and the colours of the page
ROW, HEAD, FOOT = 26, 52, 34
SUBTITLE = "each beside the nearest other"


class Drawing:
    """Shapes of one SVG; texts have the page's font, colours are CSS classes."""

    def __init__(self) -> None:
        self.shapes: list[str] = []

    def line(self, x0: float, y0: float, x1: float, y1: float, kind: str) -> None:
        ends = f'x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"'
        self.shapes.append(f'<line class="{kind}" {ends}/>')

    def dot(self, x: float, y: float, kind: str) -> None:
        self.shapes.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.shapes.append(f'<rect class="{kind}" {place} rx="3"/>')

    def text(self, x: float, y: float, words: str, kind: str) -> None:
        self.shapes.append(
            f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{words}</text>'
        )

    def svg(self, width: int, height: int, kind: str, label: str) -> str:
        name = 'xmlns="http://www.w3.org/2000/svg" role="img"'
        head = f'<svg class="{kind}" viewBox="0 0 {width} {height}" {name}'
        return f'{head} aria-label="{label}">{"".join(self.shapes)}</svg>'


def dumbbells(
    to: Drawing, found: Found, method: str, box: tuple[float, float, float]
) -> None:
    """What a method tells A and B, a line for each measurement, from the left edge."""
    left, top, width = box
    W = found.attributions[method][list(found.pair)]
    every = np.array([V[list(found.pair)] for V in found.attributions.values()])
    low, high = every.min() - 0.3, every.max() + 0.3

    def x(value: float) -> float:
        return left + width * (value - low) / (high - low)

    apart = found.apart(method)
    least = min(map(found.apart, found.attributions))
    bottom = top + HEAD + ROW * len(found.names)
    if apart == least:
        to.bar(left - 9, top - 22, width + 18, bottom - top + FOOT + 22, "best")
    to.text(left, top, method, "method")
    verdict = "agrees" if apart == least else "differs"
    to.text(left, top + 20, f"A and B differ by {apart:.1f}", verdict)
    for tick in range(int(np.ceil(low)), int(np.floor(high)) + 1):
        if tick % 2 == 0:
            to.line(x(tick), top + HEAD - 16, x(tick), bottom - 8, "tick")
            to.text(x(tick), bottom + 10, signed(tick), "number")
    to.line(x(0), top + HEAD - 16, x(0), bottom - 8, "zero")
    for row, n in enumerate(order(found)):
        y = top + HEAD + ROW * row
        a, b = W[:, n]
        to.line(x(a), y, x(b), y, "apart" if abs(a - b) > FAR else "close")
        to.dot(x(b), y, "b")
        to.dot(x(a), y, "a")


def order(found: Found) -> np.ndarray:
    """Of the measurements, by the size of what SHAP says of the two patients."""
    W = found.attributions["SHAP"][list(found.pair)]
    return np.argsort(-np.abs(W).sum(axis=0))


def labels(to: Drawing, found: Found, right: float, top: float) -> None:
    """The names of the measurements, beside the lines."""
    for row, n in enumerate(order(found)):
        to.text(right, top + HEAD + ROW * row + 4, found.names[n], "label")


def signed(value: int) -> str:
    """A tick with its sign."""
    return f"{value:+d}".replace("-", "\N{MINUS SIGN}") if value else "0"


def averages(
    to: Drawing, found: Found, box: tuple[float, float, float], name_width: float
) -> None:
    """All rows beside their twins, and what nothing that adds up goes below."""
    left, top, width = box
    to.text(left, top, f"All {len(found.predictions)} patients", "method")
    to.text(left, top + 20, SUBTITLE, "note")
    values = {method: found.apart_on_average(method) for method in found.attributions}
    start, room = left + name_width, width - name_width - 34
    scale = room / max(values.values())
    for row, (method, value) in enumerate(values.items()):
        y = top + HEAD - 8 + 46 * row
        kind = "ours" if value == min(values.values()) else "theirs"
        to.text(start - 10, y + 20, method, "label")
        to.bar(start, y, value * scale, 30, kind)
        to.text(start + value * scale + 8, y + 20, f"{value:.1f}", "value")
    x, bottom = start + found.least * scale, top + HEAD + 46 * len(values)
    to.line(x, top + HEAD - 16, x, bottom - 12, "floor")
    to.text(x, bottom + 4, f"{found.least:.1f} is the least", "limit")
    to.text(x, bottom + 20, "for all that adds up", "limit")


def in_words(found: Found) -> str:
    """The picture as a sentence."""
    pair = [f"{method} {found.apart(method):.1f}" for method in found.attributions]
    mean = [f"{m} {found.apart_on_average(m):.1f}" for m in found.attributions]
    return (
        f"What two similar patients are told differs by {', '.join(pair)} log-odds; "
        f"over all {len(found.predictions)} patients and their nearest others by "
        f"{', '.join(mean)}, where {found.least:.1f} is the least for all that adds up."
    )


def wide(found: Found, is_alone: bool = False) -> str:
    """Methods beside each other; without a page with a ground and a legend."""
    to, top = Drawing(), 24
    if is_alone:
        to.bar(0, 0, 1120, 402, "ground")
    labels(to, found, 124, top)
    for place, method in enumerate(found.attributions):
        dumbbells(to, found, method, (142 + 240 * place, top, 216))
    averages(to, found, (886, top, 234), 66)
    height = top + HEAD + ROW * len(found.names) + FOOT
    if is_alone:
        x, y = 142, height + 16
        for kind, words, room in (("a", "patient A", 90), ("b", "patient B", 90)):
            to.dot(x, y - 4, kind)
            to.text(x + 12, y, words, "note")
            x += room
        to.line(x, y - 4, x + 24, y - 4, "apart")
        told = f"differ by more than {FAR:g}; numbers are contributions in log-odds"
        to.text(x + 34, y, told, "note")
        height += 32
    return to.svg(1120, height, "wide", in_words(found))


def stacked(found: Found) -> str:
    """The same below each other, for a phone."""
    to, top = Drawing(), 24
    for method in found.attributions:
        labels(to, found, 112, top)
        dumbbells(to, found, method, (128, top, 212))
        top += HEAD + ROW * len(found.names) + FOOT + 26
    averages(to, found, (16, top, 324), 66)
    return to.svg(350, top + 236, "stacked", in_words(found))


def picture(found: Found) -> str:
    """The whole figure with its question and its caption."""
    a, b = (100 / (1 + np.exp(-found.predictions[n])) for n in found.pair)
    adds_up = [method for method in found.attributions if method != "LIME"]
    # what is written of the cost is written because it is proved
    assert found.gap < 1e-9
    return f"""<figure class="hero">
<p class="question">Two patients, nearly alike. The model gives both the same
prediction. <strong>Should they be told two different stories?</strong></p>
<p class="legend"><span class="a">Patient A: {a:.2f} % malignant</span>
<span class="b">Patient B: {b:.2f} % malignant</span></p>
{wide(found)}{stacked(found)}
<figcaption>A line joins what one measurement adds to the log-odds of A and of B.
Short is good; more than {FAR:g} is red. The model is one boosted classifier of
scikit-learn with its defaults, AUC {found.auc:.3f} on
{len(found.predictions)} unseen patients.
{" and ".join(adds_up)} add up to its prediction. Ours keep {100 * found.kept:.0f} % of
the faithfulness to the SHAP values; at this robustness nothing that adds up keeps more.
{found.n_pairs} pairs are within {ALIKE:g} standard deviations in every measurement and
{SAME:g} log-odds. SHAP tells these two most apart.
<a href="background/picture.html">How it is made</a></figcaption>
</figure>"""


def alone(found: Found) -> str:
    """The picture without a page: with the colours of the site, in both themes."""
    style = (Path(__file__).parent / "_static" / "site.css").read_text("utf-8")
    rules = re.findall(r"^\.hero svg ([^{]*{[^}]*})", style, re.MULTILINE)
    light, dark = re.findall(
        r'^html\[data-theme="\w+"\] ({[^}]*})', style, re.MULTILINE
    )
    lines = [
        "text { font-family: system-ui, sans-serif }",
        ".ground { fill: var(--pst-color-background, #fff) }",
        *(rule.replace(".hero svg ", "") for rule in rules if "stacked" not in rule),
        f"svg {light} @media (prefers-color-scheme: dark) {{ svg {dark} }}",
    ]
    return wide(found, is_alone=True).replace(
        ">", f"><style>{' '.join(lines)}</style>", 1
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(alone(find()) + "\n", encoding="utf-8")

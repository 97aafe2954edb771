"""Values and interactions of trees, against a background and path-dependent.

Our time begins with the trees that were read, as those of peers begin with their
explainers; tables of a background are made again in each call. Peers that treat one row
after another get some of the rows. An interaction is the whole index of a pair, of
which shap and woodelf have halves; diagonals are not compared. One row is explained
again and again: its time is the mean of a tenth of a second.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import propopt as po
from benchmarks.forests import regression
from benchmarks.shapley_values import boosted, table
from benchmarks.timing import OURS, Method, Role, Row, Timed, race
from propopt.structures.boxes.path_dependent import PathDependent
from propopt.structures.boxes.shapley import RECENT, BoxShapley
from propopt.structures.products.sums import Game


@cache
def deep_boosting() -> tuple[Any, Any]:
    """500 trees of depth 8 by XGBoost."""
    from xgboost import XGBRegressor

    X, y = table(30)
    model = XGBRegressor(n_estimators=500, max_depth=8, n_jobs=1)
    return model.fit(X[:5000], y[:5000]), X


@cache
def deep_forest() -> tuple[Any, Any]:
    """Two trees to the last row."""
    _, model, X = regression(2, 5000, 20)
    return model, X


class Case(NamedTuple):
    """A model and its table, rows to explain, and background rows."""

    name: str
    made: Callable[[], tuple[Any, Any]]
    n_rows: int
    n_background: int


LIGHTGBM = "LightGBM, 100 trees of 31 leaves"

CASES = (
    *(
        Case(f"{LIGHTGBM}, 30 columns", boosted, n_rows, size)
        for n_rows, size in [(1, 100), (1, 2000), (256, 100), (256, 2000), (8000, 2000)]
    ),
    Case(f"{LIGHTGBM}, 200 columns", partial(boosted, 200), 256, 2000),
    Case("XGBoost, 500 trees of depth 8, 30 columns", deep_boosting, 256, 2000),
    Case("forest, 2 trees to the last row, 20 columns", deep_forest, 256, 2000),
)


# ---- Ours


def our_values(boxes: Any, background: Any, few: Any) -> Callable[[], Any]:
    if background is None:
        return partial(PathDependent.of(boxes).values, few)
    return partial(_against, 1, boxes, Game(background), few)


def our_pairs(boxes: Any, background: Any, few: Any) -> Callable[[], Any]:
    if background is None:
        return partial(PathDependent.of(boxes).pairs, few)
    return partial(_against, 2, boxes, Game(background), few)


def _against(order: int, boxes: Any, game: Any, few: Any) -> Any:
    RECENT.clear()  # so that each call makes its tables
    return BoxShapley.of(boxes, game, order=order).values(few)


# ---- Peers


class Peer(NamedTuple):
    """A package: what it makes of a model, background rows or None, and rows."""

    name: str
    make: Callable[[Any, Any, Any], Callable[[], Any]]
    n_rows: int = 8000  # at most
    n_background: int = 2000
    role: Role = "best"


def _shap(model: Any, background: Any, few: Any) -> Callable[[], Any]:
    import shap

    explainer = shap.TreeExplainer(model, background)
    return partial(explainer.shap_values, few, check_additivity=False)


def _shap_pairs(model: Any, background: Any, few: Any) -> Callable[[], Any]:
    import shap

    explainer = shap.TreeExplainer(model, background)
    return lambda: 2.0 * np.asarray(explainer.shap_interaction_values(few))


def _woodelf(name: str, model: Any, background: Any, few: Any, **how: Any) -> Any:
    import woodelf

    known = None if background is None else pd.DataFrame(background)
    explainer = woodelf.WoodelfExplainer(model, known)
    run = partial(getattr(explainer, name), pd.DataFrame(few), verbose=False, **how)
    halves = 1 if name == "shap_values" else 2

    def quietly() -> Any:
        with contextlib.redirect_stdout(io.StringIO()):
            return halves * np.asarray(run())

    return quietly


_woodelf_values = partial(_woodelf, "shap_values")
_woodelf_pairs = partial(
    _woodelf, "shap_interaction_values", include_interaction_with_itself=False
)


def _shapiq(order: int, model: Any, background: Any, few: Any) -> Callable[[], Any]:
    """By quadrature, or against a background, compiled from version 1.8."""
    import shapiq

    how: dict[str, Any] = {"min_order": order, "index": {1: "SV", 2: "SII"}[order]}
    if background is not None:
        how |= {"mode": "interventional", "reference_dataset": background}
    explainer = shapiq.TreeExplainer(model, max_order=order, **how)

    return lambda: [explainer.explain(row).get_n_order_values(order) for row in few]


VALUES = (
    Peer("woodelf-explainer", _woodelf_values),
    Peer("shap, interventional", _shap, 256, 100, "general"),
    Peer("shapiq, interventional", partial(_shapiq, 1), 4, role="general"),
)
PAIRS = (
    Peer("woodelf-explainer", _woodelf_pairs, 256),
    Peer("shapiq, interventional", partial(_shapiq, 2), 4, role="general"),
)
PATH_VALUES = (
    Peer("woodelf-explainer", _woodelf_values),
    Peer("shap", _shap, 256, role="general"),
    Peer("shapiq", partial(_shapiq, 1), 256, role="general"),
)
PATH_PAIRS = (
    Peer("woodelf-explainer", _woodelf_pairs, 256),
    Peer("shap", _shap_pairs, 16, role="general"),
    Peer("shapiq", partial(_shapiq, 2), 16, role="general"),
)


# ---- The race


def tree_games(quick: bool) -> list[Row]:
    """Four games of trees, beside woodelf, shap and shapiq."""
    return [
        row
        for case in CASES[2 if quick else 0 :][: 1 if quick else None]
        for row in compared(case)
    ]


def compared(case: Case) -> Iterator[Row]:
    """The four games of a case; path-dependent ones once for each model and rows."""
    model, X = case.made()
    few, background = X[-case.n_rows :], X[: case.n_background]
    boxes = po.wrap(model).boxes
    rows = "one row" if case.n_rows == 1 else f"{case.n_rows:,} rows"
    against = f"of {rows}, {case.n_background:,} background rows: {case.name}"
    path = f"of {rows}, path-dependent: {case.name}"
    games = [
        (f"values {against}", our_values, background, VALUES),
        (f"interactions {against}", our_pairs, background, PAIRS),
    ]
    if case.n_background == 2000:
        games += [
            (f"values {path}", our_values, None, PATH_VALUES),
            (f"interactions {path}", our_pairs, None, PATH_PAIRS),
        ]
    for work, run, known, peers in games:
        ours = run(boxes, known, few)
        same = off_diagonal(ours())
        methods = [_method(peer, model, known, few, same) for peer in peers]
        run = partial(repeated, ours) if case.n_rows == 1 else ours
        yield from race(
            work, Method(name=OURS, role="propopt", run=run, runs=3), *methods
        )


def repeated(run: Callable[[], Any], scale: float = 1.0) -> Timed:
    """The mean time of a run, which is repeated for a tenth of a second."""
    result = run()
    began = time.process_time()
    seconds = 0.0
    count = 0
    while seconds < 0.1:
        run()
        count += 1
        seconds = time.process_time() - began
    return Timed(scale * seconds / count, result)


def _method(peer: Peer, model: Any, known: Any, few: Any, same: Any) -> Method:
    some = few[: peer.n_rows]
    size = 1 if known is None else len(known)
    given = None if known is None else known[: peer.n_background]
    taken = min(size, peer.n_background)
    made, of = len(some), len(few)
    is_whole = taken == size
    if not is_whole:
        made, of = made * taken, of * size
    run = peer.make(model, given, some)
    is_one = len(few) == 1
    return Method(
        name=peer.name,
        role=peer.role,
        run=partial(repeated, run, of / made) if is_one else run,
        runs=3 if is_one else 1,
        made=made,
        of=of,
        answer=off_diagonal if is_whole else None,
        same=same[: len(some)],
    )


def off_diagonal(found: Any) -> Any:
    """Values (N, D), or interactions (N, D, D) with zeros on their diagonals."""
    found = np.array(found, dtype=float)
    if found.ndim == 3:
        each = np.arange(found.shape[1])
        found[:, each, each] = 0.0
    return found

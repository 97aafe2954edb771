"""How long methods take: table 1, from a few fits and evaluations each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Study, draw_charts
from papers.iloco.comparisons import faith_shap, h_statistic
from papers.iloco.learners import paper_learner
from papers.iloco.methods import H, PatchesOfOneSize
from papers.iloco.printed import SECONDS, SIZES
from papers.iloco.simulations import Simulation
from papers.iloco.time_bars import TimeBars
from propopt.base.arrays import Points, Values
from propopt.base.errors import PropoptWarning
from propopt.interactions import ILOCO, DataSplit


_FAITH: Final = "Faith-Shap"
_SPLIT: Final = "iLOCO-Split (p)"
_PATCHES: Final = "iLOCO-MP (p)"
_MEASURED: Final = SIZES[:3]
_FEW: Final = 100
_BACKGROUND: Final = 20
_SCATTER: Final = 2.0
_LEARNER: Final = "the order depends on the learner, whose code and settings are ours"


def timing_figure() -> PaperFigure:
    """Table 1."""
    return PaperFigure(
        title="Table 1: seconds of processor time",
        about="Simulation (i) with the kernel machine. A few fits and evaluations are "
        "timed, and multiplied by how many there are: of iLOCO-Split 1 + M + "
        "M (M − 1)/2 fits, of iLOCO-MP 10,000, of the H-statistic N² M (M + 1)/2 "
        "evaluations, of Faith-Shap 2^M for each row against 20 others. Where one "
        "method of the paper has 11 processes (p), here it has one. The last column of "
        "table 1, N = 10,000 and M = 500, is not timed. Times differ from run to run: "
        "a ratio that is within a factor of two of what it had to be decides nothing. "
        "The paper names neither hyper-parameters nor its implementation, so that a "
        "ratio that is the other way round here depends on them.",
        panels=(
            Study(
                column="table 1",
                measure=timings,
                statements=(
                    *_STATEMENTS,
                    *(partial(as_printed, statement=one) for one in _STATEMENTS),
                    largest_is_not_timed,
                ),
                charts=lambda result: (TimeBars(result),),
                numbers=lambda result: result,
            ),
        ),
        draw=partial(draw_charts, size=(6.0, 3.2)),
    )


def timings() -> pd.DataFrame:
    """One row for each method and size: seconds here and as printed."""
    rows = [
        {
            "method": method,
            "N": n_rows,
            "M": n_features,
            "seconds": seconds(n_rows, n_features),
            "printed": SECONDS[method][place],
        }
        for method, seconds in _TIMED.items()
        for place, (n_rows, n_features) in enumerate(_MEASURED)
    ]
    return pd.DataFrame(rows)


def _split(n_rows: int, n_features: int) -> float:
    """Fits of all features, and of few pairs."""
    pairs = [(0, k + 1) for k in range(min(9, n_features - 1))]
    model = ILOCO(
        paper_learner("KRBF", "regression"), DataSplit(), sets=pairs, progress=False
    )
    taken = _processor_seconds(partial(model.fit, *_drawn(n_rows, n_features)))
    every = 1 + n_features + n_features * (n_features - 1) // 2
    return taken * every / (1 + n_features + len(pairs))


def _patches(n_rows: int, n_features: int) -> float:
    """A hundredth of them; sums over patches are a small part (see benchmarks)."""
    scheme = PatchesOfOneSize(n_patches=_FEW, n_features=0.2)
    model = ILOCO(
        paper_learner("KRBF", "regression"), scheme, sets=[(0, 1)], progress=False
    )
    taken = _processor_seconds(partial(model.fit, *_drawn(n_rows, n_features)))
    return taken * 10_000 / _FEW


def _h_statistic(n_rows: int, n_features: int) -> float:
    """Of few rows against few."""
    X, y = _drawn(n_rows, n_features)
    model = paper_learner("KRBF", "regression").fit(X, y)
    few = 3 if n_features > 50 else 10
    run = partial(h_statistic, model, X, n_rows=few, n_background=few)
    return _processor_seconds(run) * (n_rows / few) ** 2


def _faith_shap(n_rows: int, n_features: int) -> float:
    """Of ten features; more take 2^(M − 10) times as long, and 100 are too many."""
    if n_features > 20:
        return float("nan")
    X, y = _drawn(n_rows, 10)
    model = paper_learner("KRBF", "regression").fit(X, y)
    run = partial(faith_shap, model, X, n_rows=2, n_background=_BACKGROUND)
    return _processor_seconds(run) * n_rows / 2 * 2.0 ** (n_features - 10)


_TIMED: Final[dict[str, Callable[[int, int], float]]] = {
    H: _h_statistic,
    _FAITH: _faith_shap,
    _SPLIT: _split,
    _PATCHES: _patches,
}


def _drawn(n_rows: int, n_features: int) -> tuple[Points, Values]:
    simulation = Simulation(
        number="i", task="regression", tanh=False, n_features=n_features
    )
    return simulation.draw(3.0, n_rows, np.random.default_rng(19))


def _processor_seconds(run: Callable[[], Any]) -> float:
    """The less of two; that patches are few is meant."""
    taken = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PropoptWarning)
        for _ in range(2):
            began = time.process_time()
            run()
            taken.append(time.process_time() - began)
    return min(taken)


def _claim(statement: str, ratio: float, limit: float, note: str = "") -> Claim:
    """Of a ratio of times, which scatter by half or twice."""
    return Claim(
        statement=statement, value=ratio, sense=">=", limit=limit, note=note,
        choice="one process, learners of ours",
        between=(ratio / _SCATTER, ratio * _SCATTER),
    )  # fmt: skip


def split_first_when_small(result: pd.DataFrame) -> Claim:
    """At 250 rows and 10 features."""
    return _claim(
        "iLOCO-Split is faster than iLOCO-MP at N = 250, M = 10: time of the latter "
        "over that of the former",
        _ratio(result, _PATCHES, _SPLIT, 0),
        1.0,
    )


def patches_first(result: pd.DataFrame, *, place: int) -> Claim:
    """At larger tables."""
    n_rows, n_features = _MEASURED[place]
    claim = _claim(
        f"iLOCO-MP is faster than iLOCO-Split at N = {n_rows}, M = {n_features}: time "
        "of the latter over that of the former",
        _ratio(result, _SPLIT, _PATCHES, place),
        1.0,
    )
    return replace(claim, difference=_LEARNER * (place == 1))


def as_printed(
    result: pd.DataFrame, *, statement: Callable[[pd.DataFrame], Claim]
) -> Claim:
    """The same of the printed times, which 11 processes take."""
    printed = result.assign(seconds=result["printed"])
    claim = statement(printed)
    return replace(claim, choice="table 1, 11 processes", between=None)


def largest_is_not_timed(result: pd.DataFrame) -> Claim:
    """The last column of table 1."""
    del result
    return Claim(
        statement="iLOCO-MP is faster than iLOCO-Split at N = 10,000, M = 500: time of "
        "the latter over that of the former, as printed",
        value=SECONDS[_SPLIT][3] / SECONDS[_PATCHES][3],
        sense=">=",
        limit=1.0,
        difference="nothing is timed at this size",
    )


def h_is_slow(result: pd.DataFrame) -> Claim:
    """With all rows."""
    return _claim(
        "the H-statistic of all rows takes more than ten times as long as iLOCO-MP at "
        "N = 500, M = 20",
        _ratio(result, H, _PATCHES, 1),
        10.0,
    )


def _ratio(result: pd.DataFrame, method: str, other: str, place: int) -> float:
    return _seconds(result, method, place) / _seconds(result, other, place)


def _seconds(result: pd.DataFrame, method: str, place: int) -> float:
    own = result[(result["method"] == method) & (result["N"] == _MEASURED[place][0])]
    return float(own["seconds"].iloc[0])


_STATEMENTS: Final[tuple[Callable[[pd.DataFrame], Claim], ...]] = (
    split_first_when_small,
    partial(patches_first, place=1),
    partial(patches_first, place=2),
    h_is_slow,
)
"""Of times, whether they are taken here or printed."""

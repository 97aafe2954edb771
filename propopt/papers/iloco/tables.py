"""Tables that are here, in place of Car Evaluation and Cocktails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_wine,
    make_friedman1,
)

from propopt.interactions import (
    ILOCO,
    InteractionScores,
    Minipatches,
    PairScores,
    faith_shap,
    h_statistic,
    shap_interactions,
)
from propopt.papers.iloco.learners import LearningTask, paper_learner
from propopt.papers.iloco.methods import with_seed
from propopt.plots import interaction_intervals
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.findings import Claim
from propopt.reproduce.studies import Study, draw_charts


_N_PATCHES: Final = 1500
_N_ROWS: Final = 300
_TEN: Final = 10


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """Pairs of a table by all methods.

    Parameters
    ----------
    fixed, bernoulli : InteractionScores
        Patches of a fifth of the features as in the paper, and of half of them, drawn
        one by one.
    others : tuple of PairScores
        Comparison methods.
    """

    fixed: InteractionScores
    bernoulli: InteractionScores
    others: tuple[PairScores, ...]

    def to_frame(self) -> pd.DataFrame:
        """The five first pairs of each method."""
        named = {
            "iLOCO-MP, fixed": self.fixed.estimates,
            "iLOCO-MP, Bernoulli": self.bernoulli.estimates,
            **{other.method: other.estimates for other in self.others},
        }
        return pd.DataFrame(
            {
                method: [self._name(place) for place in np.argsort(-scores)[:5]]
                for method, scores in named.items()
            }
        )

    def _name(self, place: int) -> str:
        return " & ".join(str(self.fixed.names[k]) for k in self.fixed.sets[place])


def tables_figure() -> PaperFigure:
    """Case studies on stand-ins."""
    return PaperFigure(
        title="Case studies on other tables (stand-ins)",
        about="Car Evaluation (its labels) and Cocktails are not here, so that figure "
        "4 and table A1 cannot be made. In their place are diabetes, breast cancer "
        "(its ten means), wine, and 300 rows of Friedman's first function, of which "
        "columns 0 and 1 interact. 1500 trees as patches of a fifth of rows and "
        "features, as in the paper, and of half of the features drawn one by one. The "
        "charts are of the latter, with intervals of 90% by Bonferroni and the error "
        "of few patches. Comparison methods explain a forest, of classes its last.",
        panels=tuple(
            Study(
                column=name,
                measure=partial(scored_table, name),
                statements=(
                    partial(same_pairs, name=name),
                    partial(some_are_found, name=name),
                    *(_OF_FRIEDMAN if name == "Friedman 1" else ()),
                ),
                charts=partial(_charts, name=name),
                numbers=Scored.to_frame,
            )
            for name in _TABLES
        ),
        draw=partial(draw_charts, size=(5.4, 3.6)),
    )


def scored_table(name: str) -> Scored:
    """Of at most 300 rows."""
    X, y, task = _TABLES[name]()
    rows = np.random.default_rng(20).permutation(len(X))[:_N_ROWS]
    X, y = X.iloc[rows].reset_index(drop=True), np.asarray(y)[rows]
    tree = paper_learner("RF", task, patch=True)
    fixed, bernoulli = (
        ILOCO(tree, scheme, progress=False).fit(X, y).result_
        for scheme in (
            Minipatches(n_patches=_N_PATCHES, n_features=0.2),
            Minipatches(n_patches=_N_PATCHES, n_features=0.5, columns="bernoulli"),
        )
    )
    forest: Any = with_seed(paper_learner("RF", task), 0).fit(X, y)
    of = None if task == "regression" else forest.classes_[-1]
    others = (
        h_statistic(forest, X, target=of, n_rows=25, n_background=25),
        shap_interactions(forest, X, target=of, n_rows=6, n_background=8),
        faith_shap(forest, X, target=of, n_rows=6, n_background=8),
    )
    return Scored(fixed=fixed, bernoulli=bernoulli, others=others)


def same_pairs(found: Scored, *, name: str) -> Claim:
    """As in table A1, where all ten are the same."""
    mine, theirs = (
        set(np.argsort(-one)[:_TEN].tolist())
        for one in (found.fixed.estimates, found.others[-1].estimates)
    )
    return Claim(
        statement="iLOCO-MP and Faith-Shap have the same ten first pairs: how many "
        "both have",
        value=float(len(mine & theirs)),
        sense=">=",
        limit=9.0,
        note=f"of {len(found.fixed.sets)} pairs",
        difference=f"{name} instead of Car Evaluation",
    )


def some_are_found(found: Scored, *, name: str) -> Claim:
    """As in both case studies."""
    low, _ = found.bernoulli.intervals(level=0.9, adjust="bonferroni").T
    return Claim(
        statement="some pairs have intervals above zero after Bonferroni: how many, by "
        "features drawn one by one and with the error of few patches",
        value=float((low > 0).sum()),
        sense=">=",
        limit=1.0,
        note=f"of {len(low)} pairs",
        difference=f"{name} instead of Car Evaluation and Cocktails",
    )


def knows_friedman(found: Scored, *, scheme: Literal["fixed", "bernoulli"]) -> Claim:
    """By sin(π x0 x1)."""
    how = {
        "fixed": "patches of a fifth of the features, as in the paper",
        "bernoulli": "features drawn one by one",
    }[scheme]
    scores = found.fixed if scheme == "fixed" else found.bernoulli
    places = np.argsort(-scores.estimates)
    return Claim(
        statement="the pair that interacts has the largest score: its place of 45, by "
        f"{how}",
        value=float(np.flatnonzero(places == 0)[0] + 1),
        sense="<=",
        limit=1.0,
        difference="Friedman's function instead of Car Evaluation",
    )


def _diabetes() -> tuple[pd.DataFrame, Any, LearningTask]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X, y, "regression"


def _breast_cancer() -> tuple[pd.DataFrame, Any, LearningTask]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :10], y, "classification"


def _wine() -> tuple[pd.DataFrame, Any, LearningTask]:
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, y, "classification"


def _friedman() -> tuple[pd.DataFrame, Any, LearningTask]:
    X, y = make_friedman1(_N_ROWS, noise=1.0, random_state=0)
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(10)]), y, "regression"


_TABLES: Final[dict[str, Callable[[], tuple[pd.DataFrame, Any, LearningTask]]]] = {
    "diabetes": _diabetes,
    "breast cancer": _breast_cancer,
    "wine": _wine,
    "Friedman 1": _friedman,
}


@final
@dataclass(frozen=True, eq=False)
class IntervalChart:
    """The pairs with the largest scores, with their intervals."""

    title: str
    scores: InteractionScores

    def draw(self, axes: Axes) -> None:
        """As :func:`propopt.plots.interaction_intervals` does."""
        interaction_intervals(self.scores, ax=axes)


_OF_FRIEDMAN: Final = (
    partial(knows_friedman, scheme="fixed"),
    partial(knows_friedman, scheme="bernoulli"),
)


def _charts(found: Scored, *, name: str) -> tuple[IntervalChart, ...]:
    return (IntervalChart(name, found.bernoulli),)

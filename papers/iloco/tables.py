"""Tables that are here, in place of Car Evaluation and Cocktails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_wine,
    make_friedman1,
)

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Study, draw_charts
from papers.iloco.comparisons import (
    PairScores,
    RowScores,
    faith_shap,
    h_statistic,
    shap_interactions,
)
from papers.iloco.learners import LearningTask, paper_learner
from papers.iloco.methods import PatchesOfOneSize, quietly, with_seed
from papers.iloco.printed import FAITH_SHAP_TOP, ILOCO_TOP
from papers.iloco.shares import Successes
from propopt.base.arrays import Values
from propopt.interactions import ILOCO, InteractionScores, Minipatches
from propopt.interactions.inference import ErrorKind


_N_PATCHES: Final = 1500
_N_DRAWN: Final = 3000
_DRAWN: Final = 14
FRIEDMAN_DRAWS: Final = 24
"""Replicates of Friedman's function."""
_N_ROWS: Final = 300
_TEN: Final = 10
_ERRORS: Final[tuple[ErrorKind, ...]] = ("total", "rows")
_FIXED: Final = "patches of a fifth of the features, as in the paper"
_BERNOULLI: Final = "half of the features drawn one by one"


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """Pairs of a table by all methods.

    Parameters
    ----------
    fixed, bernoulli : InteractionScores
        Patches of a fifth of the features as in the paper, and of half of them, drawn
        one by one.
    others : tuple of PairScores or RowScores
        Comparison methods.
    """

    fixed: InteractionScores
    bernoulli: InteractionScores
    others: tuple[PairScores | RowScores, ...]

    def to_frame(self) -> pd.DataFrame:
        """The five first pairs of each method, and what is counted of it.

        How many of its ten first pairs Faith-Shap has, too, and how many intervals lie
        above 0 after Bonferroni, by both errors.
        """
        named = {
            "iLOCO-MP, fixed": self.fixed.scores,
            "iLOCO-MP, Bernoulli": self.bernoulli.scores,
            **{other.method: other.estimates for other in self.others},
        }
        ten = np.argsort(-self.explained)[:_TEN]
        rows = []
        for method, scores in named.items():
            order = np.argsort(-scores)
            rows.append(
                {
                    "method": method,
                    **{f"{k + 1}": self._name(order[k]) for k in range(5)},
                    "with Faith-Shap": float(np.isin(order[:_TEN], ten).sum()),
                    **self._above(method),
                }
            )
        return pd.DataFrame(rows)

    def _above(self, method: str) -> dict[str, float]:
        """Intervals above 0, of features drawn one by one."""
        counts = dict.fromkeys((f"above 0, {kind} error" for kind in _ERRORS), np.nan)
        if method == "iLOCO-MP, Bernoulli":
            for kind, name in zip(_ERRORS, counts, strict=True):
                low = self.bernoulli.intervals(level=0.9, errors=kind)[:, 0]
                counts[name] = float((low > 0).sum())
        return counts

    @property
    def explained(self) -> Values:
        """Scores of the last of the comparison methods, Faith-Shap."""
        return self.others[-1].estimates

    def _name(self, place: int) -> str:
        return " & ".join(str(self.fixed.names[k]) for k in self.fixed.sets[place])


def tables_figure() -> PaperFigure:
    """Case studies on stand-ins."""
    return PaperFigure(
        title="Case studies on other tables (stand-ins)",
        about="Car Evaluation (its labels) and Cocktails are not here, so that figure "
        "4 and table A1 are not tested. Other tables show what scores look like, and "
        "say nothing of what the paper says of its own: diabetes, breast cancer "
        "(its ten means), wine, and 300 rows of Friedman's first function, of which "
        "columns 0 and 1 interact. 1500 trees as patches of a fifth of rows and "
        "features, as in the paper, and of half of the features drawn one by one. The "
        "charts are of the latter, with intervals of 90% by Bonferroni and the error "
        "of few patches. Comparison methods explain a forest, of classes its last. "
        "Whether the pair of Friedman's function comes first is asked of 24 draws of "
        "it, by 3000 kernel machines each. Pairs are together in one of 45 patches of "
        "a fifth of ten features, which is less than is advised.",
        panels=(
            *_studies(),
            Study(
                column="Friedman 1",
                row="24 draws",
                measure=friedman_indices,
                statements=(same_pairs,),
                charts=lambda _: (),
                numbers=Successes.to_frame,
            ),
        ),
        draw=partial(draw_charts, size=(5.4, 3.6)),
    )


def _studies() -> Iterator[Study[Scored]]:
    for name in _TABLES:
        yield Study(
            column=name,
            measure=partial(scored_table, name),
            statements=(),
            charts=partial(_charts, name=name),
            numbers=Scored.to_frame,
        )


def _schemes(n_patches: int) -> dict[str, Minipatches]:
    return {
        _FIXED: PatchesOfOneSize(n_patches=n_patches, n_features=0.2),
        _BERNOULLI: Minipatches(n_patches=n_patches, n_features=0.5),
    }


def scored_table(name: str) -> Scored:
    """Of at most 300 rows."""
    X, y, task = _TABLES[name]()
    rows = np.random.default_rng(20).permutation(len(X))[:_N_ROWS]
    X, y = X.iloc[rows].reset_index(drop=True), np.asarray(y)[rows]
    tree = paper_learner("RF", task, patch=True)
    with quietly():
        fixed, bernoulli = (
            ILOCO(tree, scheme, progress=False).fit(X, y).result_
            for scheme in _schemes(_N_PATCHES).values()
        )
    forest: Any = with_seed(paper_learner("RF", task), 0).fit(X, y)
    of = None if task == "regression" else forest.classes_[-1]
    others = (
        h_statistic(forest, X, target=of, n_rows=25, n_background=25),
        shap_interactions(forest, X, target=of, n_rows=6, n_background=8),
        faith_shap(forest, X, target=of, n_rows=10, n_background=10),
    )
    return Scored(fixed=fixed, bernoulli=bernoulli, others=others)


def same_pairs(result: Successes) -> Claim:
    """Said of Car Evaluation, whose labels are not here: other tables say nothing."""
    del result
    return Claim(
        statement="Faith-Shap and iLOCO-MP have the same ten first pairs on Car "
        "Evaluation: pairs that both have, as table A1 prints them",
        value=float(len(set(FAITH_SHAP_TOP) & set(ILOCO_TOP))),
        sense=">=",
        limit=10.0,
        difference="the labels of Car Evaluation are not here; text and table agree",
    )


def friedman_indices() -> Successes:
    """Whether x0 and x1 come first, by sin(π x0 x1), in each draw."""
    with quietly():
        runs = [_first_of_friedman(seed) for seed in range(FRIEDMAN_DRAWS)]
    return Successes.of(np.zeros(1), [runs])


def _first_of_friedman(seed: int) -> dict[str, bool]:
    X, y = make_friedman1(_N_ROWS, noise=1.0, random_state=seed)
    learner = paper_learner("KRBF", "regression", patch=True)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    fitted = {
        name: ILOCO(learner, scheme, random_state=seed, progress=False).fit(standard, y)
        for name, scheme in _schemes(_N_DRAWN).items()
    }
    return {name: not one.result_.scores.argmax() for name, one in fitted.items()}


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
        """As the scores do, without their title."""
        self.scores.plot(_DRAWN, ax=axes)
        axes.set_title("")


def _charts(result: Scored, *, name: str) -> tuple[IntervalChart, ...]:
    return (IntervalChart(name, result.bernoulli),)

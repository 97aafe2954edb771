"""Pairs and triples: figures 1 and A1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Study, draw_charts
from papers.iloco.learners import LearnerName, LearningTask, paper_learner
from papers.iloco.masked import masked_study
from papers.iloco.methods import PAIRS, TRIPLES, quietly
from papers.iloco.scale import Scale
from papers.iloco.shares import Successes, excess_between, share_between
from papers.iloco.simulations import Simulation, SimulationNumber
from papers.iloco.success import success_charts
from propopt.base.arrays import Values
from propopt.interactions import ILOCO, DataSplit
from propopt.interactions.features import FeatureSets


_N_ROWS: Final = 1000
_N_FEATURES: Final = 6


@final
@dataclass(frozen=True, kw_only=True)
class OrderCurve:
    """Whether the first pair, or triple, has the largest score, by snr.

    Parameters
    ----------
    number : {"i", "iii"}
        The simulation.
    task : {"classification", "regression"}
        What is learned.
    learner : str
        What learns it.
    scale : Scale
        How often.
    """

    number: SimulationNumber
    task: LearningTask
    learner: LearnerName
    scale: Scale

    def measure(self) -> Successes:
        """By a split: patches of a fifth of ten features have no three together."""
        with quietly():
            runs = [
                [self._found(place, run) for run in range(self.scale.n_orders)]
                for place in range(len(self.scale.ratios))
            ]
        return Successes.of(self.scale.places, runs)

    def _found(self, place: int, run: int) -> Mapping[str, bool]:
        simulation = Simulation(
            number=self.number, task=self.task, tanh=self.task == "classification",
            n_features=_N_FEATURES,
        )  # fmt: skip
        rng = np.random.default_rng([run, 17, place])
        X, y = simulation.draw(self.scale.ratios[place], _N_ROWS, rng)
        seed = run + self.scale.n_orders * place
        own = paper_learner(self.learner, self.task)
        fitted = ILOCO(own, DataSplit(), random_state=seed, progress=False).fit(X, y)
        product = simulation.products[0]
        results = {PAIRS: fitted.result_, TRIPLES: fitted.interactions(order=3)}
        return {
            name: _is_about(scores.sets, scores.estimates, product)
            for name, scores in results.items()
        }


def _is_about(sets: FeatureSets, estimates: Values, product: tuple[int, ...]) -> bool:
    """Whether the first set is within the product, or the product within it."""
    best = set(sets[int(np.argmax(estimates))].tolist())
    return best <= set(product) or set(product) <= best


def orders_figure(scale: Scale) -> PaperFigure:
    """Figure 1."""
    return _figure(scale, "Figure 1", "MLP")


def orders_forest_figure(scale: Scale) -> PaperFigure:
    """Figure A1."""
    return _figure(scale, "Figure A1", "RF")


def _figure(scale: Scale, title: str, learner: LearnerName) -> PaperFigure:
    return PaperFigure(
        title=f"{title}: pairs and triples, and features that stand in for each other",
        about="A: the share of replicates in which the product has the largest score "
        "of all pairs, or of all triples, by snr; simulations (i) and (iii). The paper "
        "has classification with 10, 100 and 500 features, 10,000 rows and 200,000 "
        "patches, which take days; here are 6 features, 1000 rows and a split of them, "
        "and regression of (iii) beside the classification. B: features "
        "1 and 2 are correlated, and no features interact: whether (1, 2) has the "
        "least iLOCO, and whether 1 and 2 have the largest LOCO; "
        f"{scale.told(learner)}.",
        panels=(
            _study(scale, "i", "classification", learner),
            _study(scale, "iii", "classification", learner),
            _study(scale, "iii", "regression", learner),
            masked_study(scale, learner),
        ),
        draw=partial(draw_charts, columns=2, size=(4.6, 2.8)),
    )


def _study(
    scale: Scale, number: SimulationNumber, task: LearningTask, learner: LearnerName
) -> Study[Successes]:
    curve = OrderCurve(number=number, task=task, learner=learner, scale=scale)
    told = f"6 features, 1000 rows, a split, {scale.n_orders} replicates and "
    told += "hyper-parameters of ours"
    row = f"({number}), {task}"
    statements = {"i": (pairs_find,), "ii": (), "iii": (triples_find_more,)}[number]
    return Study(
        column=learner,
        row=row,
        measure=curve.measure,
        statements=tuple(
            partial(one, difference=f"{task}; {told}") for one in statements
        ),
        charts=partial(success_charts, title=f"{learner}, {row}"),
        numbers=Successes.to_frame,
    )


def pairs_find(result: Successes, *, difference: str) -> Claim:
    """Of simulation (i)."""
    return Claim(
        statement="scores of pairs find the product of two: share of replicates at "
        "the largest snr",
        value=float(result.shares[PAIRS][-1]),
        sense=">=",
        limit=0.5,
        note=result.told(PAIRS),
        difference=difference,
        between=share_between(result.found[PAIRS][-1]),
    )


def triples_find_more(result: Successes, *, difference: str) -> Claim:
    """Of simulation (iii)."""
    above = result.places > 0
    pairs, triples = result.found[PAIRS][above], result.found[TRIPLES][above]
    return Claim(
        statement="scores of triples find the product of three more often than those "
        "of pairs do: mean share over snr above 0, less that of pairs",
        value=float(triples.mean() - pairs.mean()),
        sense=">=",
        limit=0.0,
        note=f"triples {result.told(TRIPLES)}; pairs {result.told(PAIRS)}",
        difference=difference,
        between=excess_between(triples, pairs),
    )

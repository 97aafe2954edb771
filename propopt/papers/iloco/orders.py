"""Pairs and triples: figures 1 and A1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from propopt._typing import Values
from propopt.interactions import ILOCO, DataSplit
from propopt.interactions.features import Places
from propopt.papers.iloco.learners import LearnerName, LearningTask, paper_learner
from propopt.papers.iloco.masked import masked_study
from propopt.papers.iloco.methods import PAIRS, TRIPLES, quiet_networks
from propopt.papers.iloco.scale import Scale
from propopt.papers.iloco.simulations import Simulation, SimulationNumber
from propopt.papers.iloco.success import (
    Successes,
    shares_in_words,
    success_charts,
    successes_of,
)
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.findings import Claim
from propopt.reproduce.studies import Study, draw_charts


_N_ROWS: Final = 2000
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
        with quiet_networks():
            found = [
                [self._found(ratio, seed) for seed in range(self.scale.n_orders)]
                for ratio in self.scale.ratios
            ]
        return successes_of(self.scale.places, found)

    def _found(self, ratio: float, seed: int) -> Mapping[str, bool]:
        simulation = Simulation(
            number=self.number, task=self.task, tanh=self.task == "classification",
            n_features=_N_FEATURES,
        )  # fmt: skip
        X, y = simulation.draw(ratio, _N_ROWS, np.random.default_rng([seed, 17]))
        own = paper_learner(self.learner, self.task)
        fitted = ILOCO(own, DataSplit(), random_state=seed, progress=False).fit(X, y)
        product = simulation.products[0]
        found = {PAIRS: fitted.result_, TRIPLES: fitted.interactions(order=3)}
        return {
            name: _is_about(scores.sets, scores.estimates, product)
            for name, scores in found.items()
        }


def _is_about(sets: Places, estimates: Values, product: tuple[int, ...]) -> bool:
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
        "patches, which take days; here are 6 features, 2000 rows and a split of them, "
        "and regression beside the classification. B: features "
        "1 and 2 are correlated, and no features interact: whether (1, 2) has the "
        f"least iLOCO, and whether 1 and 2 have the largest LOCO. {scale.told}.",
        panels=(
            _study(scale, "i", "classification", learner),
            _study(scale, "iii", "classification", learner),
            _study(scale, "i", "regression", learner),
            _study(scale, "iii", "regression", learner),
            masked_study(scale, learner),
        ),
        draw=partial(draw_charts, columns=2, size=(4.6, 2.8)),
    )


def _study(
    scale: Scale, number: SimulationNumber, task: LearningTask, learner: LearnerName
) -> Study[Successes]:
    curve = OrderCurve(number=number, task=task, learner=learner, scale=scale)
    told = f"6 features, 2000 rows and a split; {scale.told}"
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


def pairs_find(found: Successes, *, difference: str) -> Claim:
    """Of simulation (i)."""
    return Claim(
        statement="scores of pairs find the product of two: share of replicates at "
        "the largest snr",
        value=float(found.shares[PAIRS][-1]),
        sense=">=",
        limit=0.7,
        note=shares_in_words(found, PAIRS),
        difference=difference,
    )


def triples_find_more(found: Successes, *, difference: str) -> Claim:
    """Of simulation (iii)."""
    pairs, triples = found.shares[PAIRS], found.shares[TRIPLES]
    return Claim(
        statement="scores of triples find the product of three more often than those "
        "of pairs do: mean share over snr above 0, less that of pairs",
        value=float((triples - pairs)[found.places > 0].mean()),
        sense=">=",
        limit=0.01,
        note=f"triples {triples[-1]:.2f} and pairs {pairs[-1]:.2f} at the largest snr",
        difference=difference,
    )

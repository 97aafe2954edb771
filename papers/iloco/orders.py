"""Pairs and triples: figures 1 and A1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.studies import Study, draw_charts
from papers.iloco.learners import LearnerName, paper_learner
from papers.iloco.masked import masked_study
from papers.iloco.methods import PAIRS, TRIPLES, WITHIN, halves, quietly
from papers.iloco.scale import Scale
from papers.iloco.shares import Successes, excess_between, share_between
from papers.iloco.simulations import Simulation
from papers.iloco.success import success_charts
from propopt.interactions import ILOCO


_N_ROWS: Final = 1000
_N_FEATURES: Final = 6
_LAYERS: Final = 3
_STANDS_IN: Final = (
    "6 features, 1,000 rows and a split instead of 10 to 500 features, 10,000 rows and "
    "200,000 patches"
)


@final
@dataclass(frozen=True, kw_only=True)
class OrderCurve:
    """Whether the product has the largest score of pairs, or of triples, by snr.

    Parameters
    ----------
    number : {"i", "iii"}
        The simulation, nonlinear classification.
    learner : str
        What learns it.
    scale : Scale
        How often.
    """

    number: Literal["i", "iii"]
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
            number=self.number, task="classification", tanh=True, n_features=_N_FEATURES
        )
        rng = np.random.default_rng([run, 17, place])
        X, y = simulation.draw(self.scale.ratios[place], _N_ROWS, rng)
        seed = run + self.scale.n_orders * place
        own = paper_learner(self.learner, "classification", layers=_LAYERS)
        fitted = ILOCO(own, halves(), random_state=seed, progress=False).fit(X, y)
        product = set(simulation.products[0])
        pair, triple = (
            set(scores.sets[int(np.argmax(scores.scores))].tolist())
            for scores in (fitted.result_, fitted.interactions(order=3))
        )
        if len(product) == 2:
            return {PAIRS: pair == product, TRIPLES: product < triple}
        return {
            PAIRS: pair == {0, 1}, WITHIN: pair < product, TRIPLES: triple == product
        }  # fmt: skip


def orders_figure(scale: Scale) -> PaperFigure:
    """Figure 1."""
    return _figure(scale, "Figure 1", "MLP")


def orders_forest_figure(scale: Scale) -> PaperFigure:
    """Figure A1."""
    return _figure(scale, "Figure A1", "RF")


def _figure(scale: Scale, title: str, learner: LearnerName) -> PaperFigure:
    layers = "The MLP has three hidden layers, as in the paper. " * (learner == "MLP")
    return PaperFigure(
        title=f"{title}: pairs and triples, and features that stand in for each other",
        about="A: the share of replicates in which the product has the largest score "
        f"of all pairs, or of all triples, by snr; simulations (i) and (iii). {layers}"
        "The paper has 10, 100 and 500 features, 10,000 rows and 200,000 patches, "
        "which take days and are not tested; here are 6 features, 1,000 rows and a "
        "split of them. What a pair has to be if three features interact, the paper "
        "does not name: (1, 2), or any of the three pairs of the product. B: features "
        "1 and 2 are correlated, and no features interact: whether (1, 2) has the "
        "least iLOCO, and whether 1 and 2 have the largest LOCO; the paper does not "
        f"name the variant; regression without products, {scale.told(learner)}.",
        panels=(
            _study(scale, "i", learner),
            _study(scale, "iii", learner),
            masked_study(scale, learner),
        ),
        draw=partial(draw_charts, columns=2, size=(4.6, 2.8)),
    )


def _study(
    scale: Scale, number: Literal["i", "iii"], learner: LearnerName
) -> Study[Successes]:
    curve = OrderCurve(number=number, learner=learner, scale=scale)
    row = f"({number}), classification"
    return Study(
        column=learner,
        row=row,
        measure=curve.measure,
        statements=(pairs_find,)
        if number == "i"
        else tuple(partial(triples_find_more, pair=pair) for pair in (PAIRS, WITHIN)),
        charts=partial(success_charts, title=f"{learner}, {row}"),
        numbers=Successes.to_frame,
    )


def pairs_find(result: Successes) -> Claim:
    """Of simulation (i)."""
    return Claim(
        statement="scores of pairs find the product of two: share of replicates at "
        "the largest snr",
        value=float(result.shares[PAIRS][-1]),
        sense=">=",
        limit=0.5,
        note=result.told(PAIRS),
        difference=_STANDS_IN,
        between=share_between(result.found[PAIRS][-1]),
    )


def triples_find_more(result: Successes, *, pair: str) -> Claim:
    """Of simulation (iii)."""
    above = result.places > 0
    pairs, triples = result.found[pair][above], result.found[TRIPLES][above]
    return Claim(
        statement="scores of triples find the product of three more often than those "
        "of pairs do: mean share over snr above 0, minus that of pairs",
        value=float(triples.mean() - pairs.mean()),
        sense=">=",
        limit=0.0,
        note=f"triples {result.told(TRIPLES)}; pairs {result.told(pair)}",
        difference=_STANDS_IN,
        choice={PAIRS: "the pair (1, 2)", WITHIN: WITHIN}[pair],
        between=excess_between(triples, pairs),
    )

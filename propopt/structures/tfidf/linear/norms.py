"""Norms that are taken behind a choice of features, or behind other weights of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from propopt._typing import Positions, Values
from propopt.structures.networks import Network, Scaling
from propopt.structures.pipelines import is_passthrough
from propopt.structures.subsets import NoSetFunction
from propopt.structures.tfidf.linear.steps import map_of, takes_norm
from propopt.structures.tfidf.vectorisers import Vectoriser


@final
@dataclass(frozen=True, eq=False)
class Normed:
    """A vectoriser whose norm is the last of a model, and what of it is passed on.

    Parameters
    ----------
    vectoriser : Vectoriser
        Its idf holds all weights before the norm, 0 of features that are left out.
    columns : array (F,)
        The features that are passed on.
    """

    vectoriser: Vectoriser
    columns: Positions

    def behind(self, step: Any) -> Normed | NoSetFunction:
        """With a step whose place is before a norm.

        An earlier norm is forgotten: the later one does not see what all features are
        divided by.
        """
        if is_passthrough(step):
            return self
        if isinstance(step, SelectorMixin):
            return self._chosen(step.get_support())
        if type(step) is Normalizer and step.norm in ("l1", "l2"):
            return self._with(norm=step.norm)
        factors = _factors(map_of(step))
        if factors is None:
            return NoSetFunction(
                f"a norm is taken behind {type(step).__name__}, which is not known to "
                "weigh each feature by itself"
            )
        normed = type(step) is TfidfTransformer and step.norm is not None
        norm = step.norm if normed else self.vectoriser.norm
        return self._with(idf=self._weighed(factors), norm=norm)

    def _chosen(self, support: Any) -> Normed:
        kept = np.asarray(support, bool)
        left = self._with(idf=self._weighed(kept.astype(float)))
        return replace(left, columns=self.columns[kept])

    def _with(self, **settings: Any) -> Normed:
        return replace(self, vectoriser=replace(self.vectoriser, **settings))

    def _weighed(self, factors: Values) -> Values:
        idf = self.vectoriser.idf
        own = np.ones(self.vectoriser.n_features) if idf is None else idf.copy()
        own[self.columns] *= factors
        return own


def last_norm(vectoriser: Vectoriser) -> Normed | NoSetFunction:
    """With all steps up to the last that takes a norm; the rest is linear, or is not.

    Parameters
    ----------
    vectoriser : Vectoriser
        Fitted, with a model behind it.
    """
    rest = vectoriser.rest
    steps = [step for _, step in rest.steps] if type(rest) is Pipeline else [rest]
    norms = [k for k, step in enumerate(steps) if takes_norm(step)]
    n_before = norms[-1] + 1 if norms else 0
    found = Normed(vectoriser, np.arange(vectoriser.n_features))
    for step in steps[:n_before]:
        then = found.behind(step)
        if isinstance(then, NoSetFunction):
            return then
        found = then
    behind = [(f"step {k}", step) for k, step in enumerate(steps[n_before:])]
    after = Pipeline(behind) if len(behind) > 1 else behind[0][1]
    return replace(found, vectoriser=replace(found.vectoriser, rest=after))


def _factors(network: Network | None) -> Values | None:
    """Of scalers that take 0 to 0."""
    match network:
        case Scaling(center, factor, offset) if (center * factor == offset).all():
            return factor
        case _:
            return None

"""Documents, explained together: faithful to the model, robust over shared words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from propopt.errors import InvalidInput
from propopt.explaining.contributions import ContributionsLike
from propopt.explaining.texts.optimum import SharedOptimum
from propopt.explaining.texts.targets import WordTargets
from propopt.explaining.together import stability_in_words
from propopt.functions import Function
from propopt.functions.models.outputs import Output, Target
from propopt.functions.of_models import wrapped
from propopt.functions.text import TextFunction
from propopt.graphs.base import Graph
from propopt.graphs.documents import document_graph
from propopt.lime.text.law import TextLaw
from propopt.results.explanation import Explanation


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentRequest:
    """What is asked about documents; the settings of :func:`propopt.explain`.

    Parameters
    ----------
    function : TextFunction
        f.
    X : sequence of str, Series or array (N,)
        The documents.
    law : "auto", "none" or TextLaw
        Effects of deleting single words, or limits of LIME.
    graph : Graph or None
        Who is similar, if not by :func:`propopt.graphs.document_graph`.
    robustness : float or None
        The weight, if not at the knee.
    rng : int, numpy.random.Generator or None
        For what is sampled.
    progress : bool or None
        Whether to show bars.
    """

    function: TextFunction
    X: Any
    law: Any = "auto"
    graph: Graph | None = None
    robustness: float | None = None
    rng: int | np.random.Generator | None = None
    progress: bool | None = None

    def explained(self, units: str, contributions: ContributionsLike) -> Explanation:
        """In the units that are asked for.

        Raises
        ------
        InvalidInput
            If there are no such units.
        """
        match units:
            case "scaled":
                return self.scaled()
            case "output":
                return self.contributions(contributions)
        raise InvalidInput(f"units: expected 'scaled' or 'output', got {units!r}")

    def scaled(self) -> Explanation:
        """Robust effects of words, or robust limits of LIME."""
        targets = self._targets
        if isinstance(self.law, TextLaw):
            aim = targets.limits(self.law)
        elif isinstance(self.law, str) and self.law in ("auto", "none"):
            aim = targets.effects()
        else:
            raise InvalidInput(
                "law: of documents expected 'auto' or 'none', effects of deleting "
                f"single words, or a TextLaw of propopt.lime, got {self.law!r}"
            )
        shared = self._shared(targets)
        return self._told(shared.nearest(aim), shared)

    def contributions(self, contributions: ContributionsLike) -> Explanation:
        """Robust contributions, which add up over the words of each document."""
        targets = self._targets
        if not isinstance(contributions, str):
            known = targets.given(contributions)
        elif contributions == "shapley":
            known = targets.shapley()
        elif contributions == "slopes":
            known = targets.slopes()
        else:
            raise InvalidInput(
                "contributions: expected 'shapley', 'slopes' or a table, got "
                f"{contributions!r}"
            )
        shared = self._shared(targets)
        return self._told(shared.complete(known), shared)

    @property
    def _targets(self) -> WordTargets:
        return WordTargets.of(self.function, self.X, self.rng)

    def _shared(self, targets: WordTargets) -> SharedOptimum:
        return SharedOptimum(
            present=targets.present,
            graph=self.graph or document_graph(targets.points),
            robustness=self.robustness,
            progress=self.progress,
        )

    def _told(self, best: Explanation, shared: SharedOptimum) -> Explanation:
        return replace(
            best,
            parameters={
                "function": repr(self.function),
                **best.parameters,
                "graph": repr(shared.graph),
                "robustness": "over the words that documents share",
                "weight rule": shared.weight_rule,
                "stability": _stability(best, shared),
            },
        )


MOST_STABLE_WORDS: Final = 20_000
"""Words of all documents whose stability is computed at once: in seconds."""


def _stability(best: Explanation, shared: SharedOptimum) -> str:
    """Whether conclusions survive other weights, neighbours and draws."""
    if np.count_nonzero(shared.present) > MOST_STABLE_WORDS:
        return (
            f"not computed for more than {MOST_STABLE_WORDS:,} words of documents: see "
            "stability()"
        )
    return stability_in_words(best)


def text_function(
    model: Any,
    X: Any,
    target: Target,
    output: Output,
    data: Any,
    batch_rows: int | None,
    outcome: str | None = None,
) -> TextFunction:
    """The function of a model of texts; the words are those of ``data``, or of X.

    Raises
    ------
    InvalidInput
        If it is a function of tables.
    """
    own = None if isinstance(model, Function) else data
    function = wrapped(model, X, target, output, own, batch_rows, outcome)
    if not isinstance(function, TextFunction):
        raise InvalidInput(
            f"X: these are documents, and {function!r} is a function of tables; "
            "propopt.wrap(model, data=documents) makes one of documents"
        )
    return function


def refuse_settings_of_tables(settings: dict[str, tuple[Any, Any]]) -> None:
    """Refuse what has no meaning for documents.

    Parameters
    ----------
    settings : mapping
        For each name what was given, and what is given by default.

    Raises
    ------
    InvalidInput
        If one was given.
    """
    for name, (given, default) in settings.items():
        is_default = given is default or (isinstance(given, str) and given == default)
        if not is_default:
            raise InvalidInput(f"{name}: {_NO_MEANING[name]}")


_NO_MEANING: Final = {
    "scale": "words have no scale: their attributions are in units of the output",
    "metric": "over words that documents share all words count alike; leave it out",
    "same_pattern": "documents have no missing numbers; leave it out",
    "precision": "effects of words are exact; leave it out",
    "interactions": "they are of columns of a table, and documents have words",
    "max_evaluations": "effects of words take one text for each; leave it out",
}

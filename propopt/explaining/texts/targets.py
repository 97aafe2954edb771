"""What attributions of words aim at: effects, limits of LIME, or Shapley values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from propopt._typing import Array, Attributions, Points, Truths
from propopt.checks import read_rng, read_seed
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explainers.texts.shapley import N_PAIRS, DocumentShapley
from propopt.explaining.contributions import Contributions
from propopt.functions.text import TextFunction
from propopt.lime.text.explainer import explanation_of_texts
from propopt.lime.text.explanation.subject import TextSubject
from propopt.lime.text.law import TextLaw
from propopt.sampling.drawn.uniforms import N_BLOCKS
from propopt.tables.alignment import aligned
from propopt.tables.names import Labels, listed
from propopt.tables.text import Document


_N_SAMPLES: Final = 5000
"""Texts for each document whose limits have to be estimated."""

EFFECTS_OF_WORDS: Final = "exact (f less f of the document without the word)"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class WordTargets:
    """The targets of documents: numbers for their words, and 0 for all others.

    Parameters
    ----------
    function : TextFunction
        f.
    documents : sequence of Document (N,)
        The texts.
    points : array (N, V)
        Counts of the words of the vocabulary.
    labels : Labels
        Names of documents and words.
    rng : int, numpy.random.Generator or None
        For what is sampled.
    """

    function: TextFunction
    documents: Sequence[Document]
    points: Points
    labels: Labels
    rng: int | np.random.Generator | None = None

    @classmethod
    def of(
        cls, function: TextFunction, X: Any, rng: int | np.random.Generator | None
    ) -> WordTargets:
        """Those of texts, all of whose words are in the vocabulary."""
        points, labels = function.read(X)
        return cls(
            function=function,
            documents=function.documents_of(X),
            points=points,
            labels=labels,
            rng=rng,
        )

    @property
    def present(self) -> Truths:
        """Which words a document has, (N, V)."""
        return self.points != 0.0

    def effects(self) -> Estimate:
        """F(x) − f(x without the word): one value of f for each word."""
        before = self.function.calls.rows
        found = self.placed(self.function.effects_in(self.documents))
        return self._estimate(found, EFFECTS_OF_WORDS, exact=True, before=before)

    def limits(self, law: TextLaw) -> Estimate:
        """What LIME's coefficients tend to; effects in documents of one word."""
        before = self.function.calls.rows
        subject = TextSubject(
            function=self.function,
            law=law,
            documents=tuple(self.documents),
            n_samples=_N_SAMPLES,
            seed=read_seed(self.rng),
        )
        found = explanation_of_texts(subject, self.labels.points)
        rest = [row for row in found.rows if row.is_known]
        short = [n for n, row in enumerate(found.rows) if not row.is_known]
        effects = iter(self.function.effects_in([self.documents[n] for n in short]))
        values = self.placed(
            [row.coefficients if row.is_known else next(effects) for row in found.rows]
        )
        sources = dict.fromkeys(row.source.partition(" (")[0] for row in rest)
        return self._estimate(
            values,
            f"limits of LIME, bandwidth {law.bandwidth:g}: {'; '.join(sources)}",
            exact=all(row.is_exact for row in rest),
            before=before,
            notes=_of_short(short),
        )

    def shapley(self) -> Contributions:
        """Shapley values by deletion, against the empty text."""
        before, rng = self.function.calls.rows, read_rng(self.rng)
        found = DocumentShapley.all_of(self.function, self.documents, rng)
        sources = "; ".join(dict.fromkeys(phi.source for phi in found))
        drawn = [phi for phi in found if phi.blocks is not None]
        estimate = self._estimate(
            self.placed([phi.values for phi in found]),
            f"Shapley values by deletion: {sources}",
            exact=not drawn,
            before=before,
            notes=tuple(dict.fromkeys(phi.reason for phi in drawn)),
            blocks=self._blocks(found) if drawn else None,
            n_draws=2 * N_PAIRS if drawn else 0,
        )
        return self._contributions(estimate)

    def slopes(self) -> Contributions:
        """Effects of deleting single words, which need not add up."""
        return self._contributions(self.effects())

    def given(self, carrier: Any) -> Contributions:
        """Attributions made elsewhere, of the same documents and words."""
        phi = aligned(carrier, self.labels, "contributions", "the documents")
        if phi.shape != self.points.shape:
            raise InvalidInput(
                f"contributions: expected {self.points.shape}, one for each document "
                f"and word, got {phi.shape}"
            )
        if (phi[~self.present] != 0.0).any():
            n, j = (
                int(place) for place in np.argwhere((phi != 0.0) & ~self.present)[0]
            )
            word = self.function.text_schema.vocabulary[j]
            raise InvalidInput(
                f"contributions: document {n} has one of {word!r}, a word that is not "
                "in it"
            )
        estimate = Estimate(
            values=np.array(phi),
            source="given",
            labels=self.labels,
            units="output",
            quantity=self.function.quantity,
        )
        return self._contributions(estimate)

    def placed(self, of_words: Sequence[Array]) -> Attributions:
        """Numbers of the words of each document, in a table of all words (N, V)."""
        return self.function.text_schema.placed(self.documents, of_words)

    def _blocks(self, found: Sequence[DocumentShapley]) -> Array:
        """Those of all documents, (10, N, V): exact values are the same in each."""
        each = [
            np.tile(phi.values, (N_BLOCKS, 1)) if phi.blocks is None else phi.blocks
            for phi in found
        ]
        return np.stack([self.placed([b[k] for b in each]) for k in range(N_BLOCKS)])

    def _contributions(self, estimate: Estimate) -> Contributions:
        """With f of the documents, and of what is left of them without any word."""
        values = self.function.texts_value(x.text for x in self.documents)
        empty = (x.without(np.zeros(x.n_words, bool)) for x in self.documents)
        base = self.function.texts_value(empty)
        return Contributions(estimate=estimate, base=base, prediction=values)

    def _estimate(
        self,
        values: Attributions,
        source: str,
        *,
        exact: bool,
        before: int,
        notes: tuple[str, ...] = (),
        blocks: Array | None = None,
        n_draws: int = 0,
    ) -> Estimate:
        return Estimate(
            values=values,
            source=source,
            exact=exact,
            blocks=blocks,
            n_draws=n_draws,
            evaluations=self.function.calls.rows - before,
            labels=self.labels,
            units="output",
            notes=notes,
            quantity=self.function.quantity,
        )


def _of_short(places: Sequence[int]) -> tuple[str, ...]:
    """What is said of documents with fewer than two words."""
    if not places:
        return ()
    return (
        f"LIME says nothing of documents {listed(places)}; they have effects of words",
    )

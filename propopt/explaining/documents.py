"""Documents, explained together: targets, optimum, the one line."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions, Points, Truths
from propopt.base.checks import (
    known_word,
    read_count,
    read_rng,
    read_seed,
)
from propopt.base.errors import InvalidInput
from propopt.base.terminal import progress_bar
from propopt.explaining.contributions import Contributions, ContributionsLike
from propopt.explaining.explainers.documents import N_PAIRS, DocumentShapley
from propopt.explaining.plan import (
    OF_TABLES,
    ExplainSettings,
    UnitsChoice,
    beside_target,
    stability_in_words,
)
from propopt.explaining.targets import LawChoice, optimum
from propopt.functions import Function
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrapped
from propopt.laws.draws import N_BLOCKS
from propopt.lime.text.explaining_texts import explanation_of_texts
from propopt.lime.text.text_explanation import TextSubject
from propopt.lime.text.text_reading import TextLaw
from propopt.losses import Completeness, GradientMatching, SharedRobustness
from propopt.losses.completeness import Constraint
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.features import document_graph
from propopt.losses.graphs.points import Graph
from propopt.results.certificate import Certificate
from propopt.results.explanation import Explanation, Parameter
from propopt.results.target_error import exact_target, unknown_target
from propopt.tables.documents import (
    Document,
    TextSchema,
    document_coordinates,
    read_texts,
)
from propopt.tables.frames import Labels, aligned, listed


# ---- Documents and what their words aim at: effects, limits of LIME, Shapley values


_ROUNDING: Final = 1e-9
"""Of predictions and bases, in documents without words."""

_N_SAMPLES: Final = 5000
"""Texts for each document whose limits have to be estimated."""

EFFECTS_OF_WORDS: Final = "exact (f less f of the document without the word)"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class JointDocuments:
    """Documents, and all that their explanation together depends on.

    Targets are numbers for the words of each, and 0 for all others.
    """

    settings: ExplainSettings
    function: TextFunction  # f
    documents: Sequence[Document]  # (N,): the texts
    points: Points  # (N, V): counts of the words of the vocabulary
    labels: Labels  # names of documents and words
    progress: bool | None  # whether to show a bar

    @classmethod
    def of(
        cls,
        settings: ExplainSettings,
        function: TextFunction,
        X: Any,
        progress: bool | None = None,
    ) -> JointDocuments:
        """Those of texts, all of whose words are in the vocabulary."""
        points, labels = function.read(X)
        return cls(
            settings=settings,
            function=function,
            documents=function.documents_of(X),
            points=points,
            labels=labels,
            progress=progress,
        )

    @cached_property
    def present(self) -> Truths:
        """Which words a document has, (N, V)."""
        return self.points != 0.0

    @cached_property
    def graph(self) -> Graph:
        """Which documents are similar."""
        given, most = self.settings.graph, self.settings.n_neighbors
        return given or document_graph(self.points, most)

    @property
    def weight_rule(self) -> str:
        """Where the weight comes from, in words."""
        if self.settings.robustness is not None:
            return "given"
        if self._robust.entry_graph.n_edges == 0:
            return "none: no similar documents share a word"
        return "knee of the curve"

    @cached_property
    def _robust(self) -> SharedRobustness:
        return SharedRobustness(self.graph, self.present)

    def of_law(self, law: LawChoice | TextLaw) -> Estimate:
        """Limits of LIME where its law is asked for, and effects of words else."""
        if isinstance(law, TextLaw):
            return self.limits(law)
        if law not in ("auto", "none"):
            raise InvalidInput(
                "law: of documents expected 'auto' or 'none', effects of deleting "
                f"single words, or a TextLaw of propopt.lime, got {law!r}"
            )
        return self.effects()

    def contributions(self, contributions: ContributionsLike) -> Contributions:
        """Contributions of words, or those that were made elsewhere."""
        if not isinstance(contributions, str):
            return self.given(contributions)
        made = {"shapley": self.shapley, "slopes": self.slopes}.get(contributions)
        if made is None:
            raise InvalidInput(
                "contributions: expected 'shapley', 'slopes' or a table, got "
                f"{contributions!r}"
            )
        return made()

    def effects(self) -> Estimate:
        """F(x) − f(x without the word): one value of f for each word."""
        before = self.function.calls.rows
        result = self.placed(self.function.effects_in(self.documents))
        estimate = Estimate(values=result, source=EFFECTS_OF_WORDS, exact=True)
        return self._told(estimate, before)

    def limits(self, law: TextLaw) -> Estimate:
        """What LIME's coefficients tend to; effects in documents of one word."""
        before = self.function.calls.rows
        subject = TextSubject(
            function=self.function,
            law=law,
            documents=tuple(self.documents),
            n_samples=_N_SAMPLES,
            seed=read_seed(self.settings.rng),
        )
        result = explanation_of_texts(subject, self.labels.points)
        rest = [row for row in result.rows if row.is_known]
        short = [n for n, row in enumerate(result.rows) if not row.is_known]
        effects = iter(self.function.effects_in([self.documents[n] for n in short]))
        values = self.placed(
            [row.coefficients if row.is_known else next(effects) for row in result.rows]
        )
        sources = dict.fromkeys(row.source.partition(" (")[0] for row in rest)
        note = f"LIME says nothing of documents {listed(short)}; they have effects"
        estimate = Estimate(
            values=values,
            source=f"limits of LIME, bandwidth {law.bandwidth:g}: {'; '.join(sources)}",
            exact=all(row.is_exact for row in rest),
            notes=(f"{note} of words",) if short else (),
        )
        return self._told(estimate, before)

    def shapley(self) -> Contributions:
        """Shapley values by deletion, against the empty text."""
        before, rng = self.function.calls.rows, read_rng(self.settings.rng)
        result = DocumentShapley.all_of(self.function, self.documents, rng)
        sources = "; ".join(dict.fromkeys(phi.source for phi in result))
        sampled = [phi for phi in result if phi.blocks is not None]
        estimate = Estimate(
            values=self.placed([phi.values for phi in result]),
            source=f"Shapley values by deletion: {sources}",
            exact=not sampled,
            notes=tuple(dict.fromkeys(phi.reason for phi in sampled)),
            blocks=self._blocks(result) if sampled else None,
            n_draws=2 * N_PAIRS if sampled else 0,
        )
        return self._contributions(self._told(estimate, before))

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
        estimate = Estimate(values=np.array(phi), source="given")
        return self._contributions(self._told(estimate, self.function.calls.rows))

    def placed(self, of_words: Sequence[Array]) -> Attributions:
        """Numbers of the words of each document, in a table of all words (N, V)."""
        return self.function.text_schema.placed(self.documents, of_words)

    def nearest(self, aim: Estimate, *constraints: Constraint) -> Explanation:
        """The best for a target, with the target beside it."""
        matching, robust = [(1.0, GradientMatching(aim))], self._robust
        weight = self.settings.robustness
        if weight is None and robust.entry_graph.n_edges == 0:
            weight = 0.0
        best = optimum(matching, robust, weight, self.progress, constraints)
        return beside_target(best, aim)

    def complete(self, known: Contributions) -> Explanation:
        """The best that add up to f(x) less f of no word, over the words of x."""
        total = known.total.copy()
        empty = ~self.present.any(axis=1)
        size = np.maximum(np.abs(known.prediction), np.abs(known.base))
        if (np.abs(total) > _ROUNDING * size)[empty].any():
            raise InvalidInput(
                f"document {int(np.flatnonzero(empty)[0])} has no word, and the model "
                "gives the same text two values"
            )
        total[empty] = 0.0
        constraints = []
        if not empty.all():
            constraints = [Completeness(total, self.present.astype(float))]
        best = self.nearest(known.estimate, *constraints)
        parameters = {
            "contributions" if k == "gradient" else k: v
            for k, v in best.parameters.items()
        }
        return replace(
            best,
            parameters={**parameters, "contributions miss": known.missed},
            gradient=None,
            **known.fields,
        )

    def _blocks(self, results: Sequence[DocumentShapley]) -> Array:
        """Those of all documents, (10, N, V): exact values are the same in each."""
        each = [
            np.tile(phi.values, (N_BLOCKS, 1)) if phi.blocks is None else phi.blocks
            for phi in results
        ]
        return np.stack([self.placed([b[k] for b in each]) for k in range(N_BLOCKS)])

    def _contributions(self, estimate: Estimate) -> Contributions:
        """With f of the documents, and of what is left of them without any word."""
        values = self.function.texts_value(x.text for x in self.documents)
        empty = (x.without(np.zeros(x.n_words, bool)) for x in self.documents)
        base = self.function.texts_value(empty)
        return Contributions(estimate=estimate, base=base, prediction=values)

    def _told(self, estimate: Estimate, before: int) -> Estimate:
        """An estimate, with what is known of all; the model had ``before`` texts."""
        return replace(
            estimate,
            evaluations=self.function.calls.rows - before,
            labels=self.labels,
            units="output",
            quantity=self.function.quantity,
        )


# ---- Documents, explained together: faithful to the model, robust over shared words


def fitted_documents(
    settings: ExplainSettings, model: Any, X: Any, data: Any, progress: bool | None
) -> FittedDocuments:
    """Documents explained together; the words are those of ``data``, or of X."""
    settings.refuse(OF_TABLES)
    function = text_function(settings, model, X, data)
    known_word(settings.units, UnitsChoice, "units")
    plan = JointDocuments.of(settings, function, X, progress)
    if settings.units == "scaled":
        best = plan.nearest(plan.of_law(settings.law))
    else:
        best = plan.complete(plan.contributions(settings.contributions))
    stability = (
        f"not computed for more than {MOST_STABLE_WORDS:,} words of documents: see "
        "stability()"
    )
    if np.count_nonzero(plan.present) <= MOST_STABLE_WORDS:
        stability = stability_in_words(best)
    parameters = {
        "function": repr(function),
        **best.parameters,
        "graph": repr(plan.graph),
        "robustness": "over the words that documents share",
        "weight rule": plan.weight_rule,
        "stability": stability,
    }
    reference = replace(best, parameters=parameters)
    return FittedDocuments(
        settings=settings, function=function, points=plan.points, reference=reference
    )


MOST_STABLE_WORDS: Final = 20_000
"""Words of all documents whose stability is computed at once: in seconds."""


def text_function(
    settings: ExplainSettings, model: Any, X: Any, data: Any
) -> TextFunction:
    """The function of a model of texts; the words are those of ``data``, or of X."""
    function = wrapped(
        model,
        X,
        settings.target,
        settings.output,
        None if isinstance(model, Function) else data,
        settings.batch_rows,
        settings.outcome,
    )
    if not isinstance(function, TextFunction):
        raise InvalidInput(
            f"X: these are documents, and {function!r} is a function of tables; "
            "propopt.wrap(model, data=documents) makes one of documents"
        )
    return function


# ---- New documents, each by itself beside those that were explained together


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NewDocument:
    """A document beside fixed ones: the optimum of what it would add, over its words.

    min over w of  Σ_d (w_d − g_d)² + 2b Σ_j s_j Σ_{d in j} (w_d − w_jd)²,

    with h_d = 1 + 2b Σ_{j with d} s_j and p_d = (g_d + 2b Σ_{j with d} s_j w_jd)/h_d
    w = p, or where it adds up to t  w = p + (1/h)(t − Σ_d p_d)/Σ_d (1/h_d).
    """

    document: Document
    aim: Estimate  # of a table of its words alone
    known: Contributions | None  # where it adds up
    similarities: Array  # (k,): s > 0
    fixed: Array  # (k, d): w_j
    shared: Truths  # (k, d): which of the words they have too
    weight: float  # b

    @property
    def target(self) -> Array:
        """G, (d,)."""
        return np.asarray(self.aim.values[0])

    @property
    def total(self) -> float | None:
        """T, where it adds up."""
        return None if self.known is None else float(self.known.total[0])

    @cached_property
    def pulls(self) -> Array:
        """2b s_j where a word is shared, (k, d)."""
        return 2.0 * self.weight * self.similarities[:, None] * self.shared

    @cached_property
    def free(self) -> Array:
        """1/h, (d,)."""
        return np.asarray(1.0 / (1.0 + self.pulls.sum(axis=0)))

    @cached_property
    def w(self) -> Array:
        """The optimum, (d,)."""
        w = self.target + self.free * (self.pulls * (self.fixed - self.target)).sum(0)
        if self.total is not None and len(w):
            for _ in range(2):  # what rounding leaves of the sum, once more
                w = w + self.free * ((self.total - w.sum()) / self.free.sum())
        return w

    @property
    def losses(self) -> Array:
        """Of the target, and of the ordered pairs, (2,)."""
        apart = self.shared * (self.w - self.fixed) ** 2
        pairs = 2.0 * (self.similarities[:, None] * apart).sum()
        return np.array([((self.w - self.target) ** 2).sum(), pairs])

    @property
    def excess(self) -> float:
        """It is at most so much above the least objective: Σ_d r_d²/h_d, r half slopes.

        Where it adds up, r less its mean, and what rounding of the sum is worth.
        """
        r = self.w - self.target + (self.pulls * (self.w - self.fixed)).sum(axis=0)
        along = 0.0
        if self.total is not None and len(r):
            along = float((r * self.free).sum() / self.free.sum())
        rounding = 2.0 * self.missed * along
        return float((self.free * (r - along) ** 2).sum()) + max(rounding, 0.0)

    @property
    def missed(self) -> float:
        """Σ_d w_d − t; 0 where there is none."""
        return 0.0 if self.total is None else float(self.w.sum()) - self.total

    @property
    def violation(self) -> float:
        """What it misses over the largest sum that its entries could have."""
        if self.total is None:
            return 0.0
        most = max(float(np.abs(self.w).sum()), abs(self.total), sys.float_info.min)
        return abs(self.missed) / most


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedDocuments:
    """Documents explained together, and answers for others that depend on no others."""

    settings: ExplainSettings
    function: TextFunction
    points: Points  # (n, V): how often each has each word
    reference: Explanation  # their joint optimum

    @property
    def weights(self) -> tuple[float, float]:
        """Of the target, and of robustness."""
        first, pairs = self.reference.weights.values()
        return first, pairs

    @cached_property
    def directions(self) -> Points:
        """(n, V): of length one, near where rarer words are shared."""
        return document_coordinates(self.points)

    def explain(self, X: Any, progress: bool | None) -> Explanation:
        """Each document by itself; its new words are compared with none."""
        began = time.perf_counter()
        texts, names = read_texts(X, "X_new")
        rows = []
        with progress_bar("explain", len(texts), progress) as bar:
            for text in texts:
                rows.append(self._beside_others(text))
                bar.advance(bar.task_ids[0])
        documents, aims = [row.document for row in rows], [row.aim for row in rows]
        old = self.function.text_schema
        new = (word for document in documents for word in document.words)
        words = tuple(dict.fromkeys((*old.vocabulary, *new)))
        schema = TextSchema(old.rule, words, tuple(documents))
        W = schema.placed(documents, [row.w for row in rows])
        targets = schema.placed(documents, [row.target for row in rows])
        known = [row.known for row in rows if row.known is not None]
        own: dict[str, Any] = {"gradient": targets}
        if known:
            own = {
                "contributions": targets,
                "base_value": np.concatenate([one.base for one in known]),
                "prediction": np.concatenate([one.prediction for one in known]),
            }
        losses = np.sum([row.losses for row in rows], axis=0)
        a, b = self.weights
        value = float(a * losses[0] + b * losses[1])
        zero = sum(float((row.target**2).sum()) for row in rows)
        certificate = Certificate(
            value=value,
            lower_bound=max(value - math.fsum(row.excess for row in rows), 0.0),
            scale=max(value, _ROUNDING * zero),
            kind="strong convexity",
            violation=max(row.violation for row in rows),
        )
        source = "; ".join(dict.fromkeys(aim.source for aim in aims))
        exact = all(aim.exact for aim in aims)
        told = exact_target if exact else unknown_target
        return Explanation(
            attributions=W,
            method="optimized",
            labels=Labels(names, words, words, texts=tuple(texts)),
            parameters=self._parameters,
            weights=dict(self.reference.weights),
            losses=dict(zip(self.reference.weights, losses.tolist(), strict=True)),
            certificate=certificate,
            details={"similarity": np.array([row.similarities.sum() for row in rows])},
            solver="conditional",
            quantity=self.function.quantity,
            units="output",
            evaluations=sum(aim.evaluations for aim in aims),
            seconds=time.perf_counter() - began,
            target=told(source, certificate.scale),
            **own,
        )

    @property
    def _parameters(self) -> dict[str, Parameter]:
        told = {k: v for k, v in self.reference.parameters.items() if k != "stability"}
        near = f"{self.settings.n_neighbors} nearest of {len(self.points)}"
        return {**told, "graph": f"{near} reference documents"}

    def _beside_others(self, text: str) -> NewDocument:
        """A document beside those that share most of its words.

        What it aims at is that of a function that knows its words alone.
        """
        own = self.function.text_schema
        document = own.document_of(text)
        schema = TextSchema(own.rule, document.words, (document,))
        function = replace(self.function, text_schema=schema)
        targets = JointDocuments.of(self.settings, function, [text])
        if self.settings.units == "scaled":
            law = self.settings.law if document.n_words > 1 else "auto"  # as limits do
            aim, known = targets.of_law(law), None
        else:
            known = targets.contributions(self.settings.contributions)
            aim = known.estimate
        columns = np.array([own.places.get(x, -1) for x in document.words], np.intp)
        old, n = columns >= 0, len(self.points)
        present = self.points[:, columns] * old != 0.0
        idf = 1.0 + np.log((1.0 + n) / (1.0 + present.sum(axis=0)))
        weighted = document.counts * idf
        size = math.sqrt(float((weighted**2).sum())) or 1.0
        cosines = (self.directions[:, columns] * old * (weighted / size)).sum(axis=1)
        near = np.argsort(-cosines, kind="stable")[: self.settings.n_neighbors]
        near = near[cosines[near] > 0.0]
        return NewDocument(
            document=document,
            aim=aim,
            known=known,
            similarities=cosines[near],
            fixed=self.reference.attributions[near][:, columns] * old,
            shared=present[near],
            weight=self.weights[1],
        )

    def interpolate(self, X: Any) -> Explanation:
        """Refused: what a document aims at is all that is known of its new words."""
        del X
        raise InvalidInput(
            "interpolate: new words have no attributions in the reference documents; "
            "explain(documents) asks the model"
        )


def drawn_documents(
    settings: ExplainSettings, model: Any, data: Any, X: Any, progress: bool | None
) -> FittedDocuments:
    """The reference documents X, or some of ``data``, explained together."""
    settings.refuse(
        dict.fromkeys(("weights", "lengthscale", "smoothness"), _OF_COLUMNS)
    )
    settings.refuse_for_rows()
    if X is None:
        texts, names = read_texts(data, "data")
        most = read_count(settings.n_reference, "n_reference")
        if len(texts) > most:
            rng = read_rng(settings.rng)
            kept = np.sort(rng.choice(len(texts), most, replace=False)).tolist()
            texts = [texts[n] for n in kept]
            names = names and tuple(names[n] for n in kept)
        X = texts if names is None else pd.Series(texts, index=list(names))
    return fitted_documents(settings, model, X, data, progress)


_OF_COLUMNS: Final = "it is of rows of a table, and documents are compared by words"

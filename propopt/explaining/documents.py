"""Joint explanations of documents, and answers for new documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, Final, final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from propopt.base.arrays import Array, Attributions, Points, largest_first
from propopt.base.checks import read_rng
from propopt.base.declared import lazily
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.terminal import tracked
from propopt.base.text import Reason
from propopt.explaining.out_of_sample import (
    CompleteRows,
    FittedReference,
    OutOfSampleRows,
    RowOptima,
)
from propopt.explaining.problem import CheckedSettings, ExplanationProblem
from propopt.explaining.targets import LawChoice, Targets, error_of_parts
from propopt.functions import Function
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrap_with_table
from propopt.laws.background import Background, canonical_order, digests_of
from propopt.laws.draws import N_BLOCKS
from propopt.laws.shapley_draws import ShapleyDraws
from propopt.lime.explaining import explain_documents
from propopt.lime.text.sampled_words import TextSubject
from propopt.lime.text.word_limits import TextLaw, check_documents, enumerated_words
from propopt.losses import Completeness, Program, SharedRobustness
from propopt.losses.faithfulness import Estimate
from propopt.losses.graphs.features import document_graph
from propopt.losses.linear_algebra import Components
from propopt.losses.maps import OverEntries
from propopt.proofs.certificate import joint_proof, row_proofs
from propopt.structures.subsets.conjunctions import MOST_ENUMERATED
from propopt.structures.subsets.sets import SetFunction, word_shapley
from propopt.tables.documents import (
    TextDocument,
    TextSchema,
    document_coordinates,
    rarity,
    read_texts,
)
from propopt.tables.frames import Labels, listed
from propopt.tables.imported import aligned


# ---- Targets of words: effects of deletion, limits of LIME, Shapley values


_N_SAMPLES: Final = 5000
"""Sampled texts for each document with estimated limits."""

_ORDERS: Final = DrawPlan(100)
"""Orders of the words of a document if Shapley values are sampled."""

EFFECTS_OF_WORDS: Final = "exact (f less f of the document without the word)"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DocumentsProblem(ExplanationProblem):
    """Documents with all inputs of their joint explanation; points are word counts."""

    function: TextFunction  # f
    documents: Sequence[TextDocument]  # (N,): the texts with their words

    @classmethod
    def of_model(
        cls,
        settings: CheckedSettings,
        model: Any,
        data: Any,
        X: Any,
        progress: bool | None,
    ) -> DocumentsProblem:
        """The problem of reference documents X, or of some of ``data``."""
        documents = X
        if X is None:
            documents = _first(settings, data)
        data_of_function = None if isinstance(model, Function) else data
        function, _ = wrap_with_table(
            model,
            documents,
            settings.target,
            settings.output,
            data_of_function,
            settings.sampling.batch_rows,
            settings.outcome,
        )
        if not isinstance(function, TextFunction):
            raise InvalidInput(
                f"X: got documents, and {function!r} is a function of tables; write "
                "propopt.wrap(model, data=documents)"
            )
        if X is None:  # columns, too, are independent of the order of data
            words = tuple(sorted(function.text_schema.vocabulary))
            schema = replace(function.text_schema, vocabulary=words)
            function = replace(function, text_schema=schema)
        return cls.of(settings, function, documents, progress)

    @classmethod
    def of(
        cls,
        settings: CheckedSettings,
        function: TextFunction,
        X: Any,
        progress: bool | None = None,
    ) -> DocumentsProblem:
        """The problem of some texts with all words in the vocabulary."""
        settings.refuse(cls.inapplicable(settings))
        points, labels = function.read(X)
        return cls(
            settings=settings,
            function=function,
            documents=function.documents_of(X),
            points=points,
            labels=labels,
            progress=progress,
        )

    @staticmethod
    def inapplicable(settings: CheckedSettings) -> Mapping[str, str]:
        """Settings of tables, and of draws that documents do not need."""
        reasons = {
            "scale": "words have no scale; attributions are in units of the output",
            "metric": "shared words have equal weights; leave it out",
            "offset": "words are present or absent, without main effects; leave it out",
            "groups": "each word is a player; leave it out",
            "sample_weight": "the background is the empty text, not rows; leave it out",
        }
        if settings.sampling.precision or settings.sampling.max_evaluations:
            reasons["sampling"] = (
                "effects of words are exact and need one text each; leave out "
                "precision and max_evaluations"
            )
        if not isinstance(settings.law, TextLaw) and settings.law != "none":
            reasons["law"] = (
                "for documents expected 'auto' or 'none' (effects of deleting single "
                f"words), or a TextLaw of propopt.lime, got {settings.law!r}"
            )
        return reasons

    def margins(self, base_margin: Any, X: Any) -> None:
        del X
        if base_margin is not None:
            raise InvalidInput(
                "base_margin: it belongs to rows of a table, and these are documents; "
                "leave it out"
            )

    @cached_property
    def robust(self) -> SharedRobustness:
        """The loss of robustness over words that similar documents share."""
        graph = self.settings.given_graph or document_graph(
            self.points, self.settings.nearest.n_neighbors
        )
        return SharedRobustness(graph, self.points != 0.0)

    @property
    def weight(self) -> tuple[float | str | None, str]:
        """The weight of robustness, zero if no documents are compared, and its rule."""
        weight, rule = super().weight
        if weight is None and self.robust.entry_graph.n_edges == 0:
            return 0.0, "none: no similar documents share a word"
        return weight, rule

    def targets(self, law: LawChoice | TextLaw) -> Targets:
        """The targets of all words: effects, limits of LIME, or contributions."""
        before = self.function.calls.rows
        parts = self.settings.kind == "contributions"
        if parts:
            aim = self._parts()
        else:
            aim = self._limits(law) if isinstance(law, TextLaw) else self._effects()
        estimate = replace(
            aim,
            evaluations=self.function.calls.rows - before,
            labels=self.labels,
            units="output",
            quantity=self.function.quantity,
        )
        if not parts:
            return Targets(estimate=estimate)
        # f of the documents, and of the documents without any word
        values = self.function.texts_value(x.text for x in self.documents)
        empty = (x.without(np.zeros(x.n_words, bool)) for x in self.documents)
        base = self.function.texts_value(empty)
        return Targets(estimate=estimate, base=base, prediction=values)

    def _parts(self) -> Estimate:
        """Contributions of words, computed or given."""
        method = self.settings.contributions
        if not isinstance(method, str):
            return self._given(method)
        return self._shapley() if method == "shapley" else self._effects()

    def _effects(self) -> Estimate:
        """Effects f(x) − f(x without the word), which need not add up."""
        result = self._placed(self.function.effects_in(self.documents))
        return Estimate(values=result, source=EFFECTS_OF_WORDS, exact=True)

    def _limits(self, law: TextLaw) -> Estimate:
        """Limits of LIME's coefficients; effects for documents of one word."""
        subject = TextSubject(
            function=self.function,
            law=law,
            documents=tuple(self.documents),
            draws=DrawPlan(_N_SAMPLES, self.settings.seed),
        )
        result = explain_documents(subject, self.labels.points)
        limits = [row for row in result.records if row.has_coefficients]
        short = [n for n, row in enumerate(result.records) if not row.has_coefficients]
        effects = iter(self.function.effects_in([self.documents[n] for n in short]))
        values = self._placed(
            [
                row.coefficients if row.has_coefficients else next(effects)
                for row in result.records
            ]
        )
        sources = dict.fromkeys(row.source.partition(" (")[0] for row in limits)
        if short:  # LIME has no coefficients for them
            sources[f"effects of words of documents {listed(short)}"] = None
        return Estimate(
            values=values,
            source=f"limits of LIME, bandwidth {law.bandwidth:g}: {'; '.join(sources)}",
            exact=all(row.is_exact for row in limits),
        )

    def _shapley(self) -> Estimate:
        """Shapley values by deletion, against the empty text."""
        rng = read_rng(self.settings.sampling.rng)
        readings = check_documents(self.function, self.documents)
        for reading in readings:
            reading.refuse()
        result = [
            self._shapley_of(document, reading.words, rng)
            for document, reading in zip(self.documents, readings, strict=True)
        ]
        sampled = [phi for phi in result if not phi.exact]
        sources = "; ".join(dict.fromkeys(phi.source for phi in result))
        return Estimate(
            values=self._placed([phi.values[0] for phi in result]),
            source=f"Shapley values by deletion: {sources}",
            exact=not sampled,
            blocks=_placed_blocks(result, self._placed),
            n_draws=2 * _ORDERS.n_samples if sampled else 0,
        )

    def _shapley_of(
        self,
        document: TextDocument,
        sets: SetFunction | Reason,
        rng: np.random.Generator,
    ) -> Estimate:
        """Shapley values (1, d) of a document; exact if as cheap as sampling."""
        d = document.n_words
        source = "exact"
        # texts of sampled orders, with shared ends
        n_draws = 2 * _ORDERS.n_samples * (d - 1) + 2
        if isinstance(sets, Reason) and 0 < d <= MOST_ENUMERATED and 2**d <= n_draws:
            source = "exact (all sets of words)"
            sets = enumerated_words(self.function, document)
        if d == 0:
            return Estimate(values=np.zeros((1, 0)), source=source, exact=True)
        if not isinstance(sets, Reason):
            phi = word_shapley(sets)[None]
            return Estimate(values=phi, source=source, exact=True)
        at = self.function.of_document(document)
        nothing = Background.of_points(np.zeros((1, d)))
        text = np.ones((1, d))
        ends = at.value_at(text), at.value_at(nothing.points)
        drawn = ShapleyDraws.of(at.value_at, nothing, text, rng, _ORDERS, ends=ends)
        source = f"{drawn.in_words} of the words, as {sets.reason}"
        n_draws = 2 * drawn.n_units
        return Estimate.of_blocks(drawn.blocks(0.0), source=source, n_draws=n_draws)

    def _given(self, carrier: Any) -> Estimate:
        """Given contributions, checked to match the documents and their words."""
        phi = aligned(carrier, self.labels, "contributions", "the documents")
        if phi.shape != self.points.shape:
            raise InvalidInput(
                f"contributions: expected {self.points.shape}, one for each document "
                f"and word, got {phi.shape}"
            )
        elsewhere = np.argwhere((phi != 0.0) & (self.points == 0.0))
        if len(elsewhere):
            n, j = elsewhere[0].tolist()
            word = self.function.text_schema.vocabulary[j]
            raise InvalidInput(
                f"contributions: document {n} has a contribution of {word!r}, a word "
                "that does not occur in it"
            )
        return Estimate(values=np.array(phi), source="given")

    def _placed(self, of_words: Sequence[Array]) -> Attributions:
        """Numbers for the words of each document, as a table of all words (N, V)."""
        return self.function.text_schema.in_columns(self.documents, of_words)


def _placed_blocks(
    of_documents: Sequence[Estimate],
    placed: Callable[[Sequence[Array]], Attributions],
) -> Array | None:
    """Blocks (B, N, V) of estimates of single documents; None if none was sampled."""
    if all(one.blocks is None for one in of_documents):
        return None
    each = [  # exact values are the same in each block
        np.tile(one.values, (N_BLOCKS, 1, 1)) if one.blocks is None else one.blocks
        for one in of_documents
    ]
    blocks = [placed([of_one[k, 0] for of_one in each]) for k in range(N_BLOCKS)]
    return np.stack(blocks)


# ---- Fitted documents and answers for new ones


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FittedDocuments(FittedReference):
    """The joint optimum of reference documents, and answers for new documents."""

    problem: DocumentsProblem

    @classmethod
    def of(cls, problem: DocumentsProblem) -> FittedDocuments:
        """Explain the reference documents of a problem jointly."""
        function = problem.function
        before = replace(function.calls)
        _, rule = problem.weight  # raises for graphs before anything is computed
        best = problem.nearest(problem.targets(problem.settings.law))
        parameters = {
            "function": repr(function),
            **best.parameters,
            "graph": repr(problem.robust.graph),
            "robustness": "over the words that documents share",
            "weight rule": rule,
        }
        explained = replace(
            best,
            parameters=parameters,
            evaluations=function.calls.rows - before.rows,
            model_seconds=function.calls.seconds - before.seconds,
        )
        return cls(problem=problem, reference=explained)

    @cached_property
    def directions(self) -> Points:
        """Unit vectors (n, V) of documents, close if they share rare words."""
        return document_coordinates(self.problem.points)

    def _optima_of(self, X: Any, progress: bool | None) -> RowOptima:
        """Each document by itself; new words are compared with none."""
        texts, names = read_texts(X, "X")
        items = tracked("explain", texts, progress)
        solved = [self._answer_for(text) for text in items]
        documents, parts, rows = zip(*solved, strict=True)
        old = self.problem.function.text_schema
        new = (word for document in documents for word in document.words)
        words = tuple(dict.fromkeys((*old.vocabulary, *new)))
        schema = TextSchema(old.rule, words, documents)
        aims = [part.estimate for part in parts]
        estimate = Estimate(
            values=schema.in_columns(documents, [row.target for row in rows]),
            source="; ".join(dict.fromkeys(aim.source for aim in aims)),
            exact=all(aim.exact for aim in aims),
        )
        blocks = _placed_blocks(aims, partial(schema.in_columns, documents))
        n_draws = max(aim.n_draws for aim in aims)
        sampled = replace(estimate, blocks=blocks, n_draws=n_draws)
        optima = [row.optima() for row in rows]
        of_rows = [row.measures(w) for row, w in zip(rows, optima, strict=True)]
        measures = {name: np.array([x[name] for x in of_rows]) for name in of_rows[0]}
        proof = joint_proof(measures)
        most = self.problem.settings.nearest.n_neighbors
        nearest = f"{most} nearest of {len(self.problem.points)}"
        fields = {
            "attributions": schema.in_columns(documents, optima),
            "labels": Labels(names, words, words, texts=tuple(texts)),
            "parameters": {
                **self.reference.parameters,
                "graph": f"{nearest} reference documents",
            },
            "certificate": proof,
            "details": {
                **row_proofs(measures),
                "similarity": np.array([row.similarities.sum() for row in rows]),
            },
            "target": error_of_parts(sampled),
            "program": lazily(cache(partial(self._program, schema, estimate, rows))),
        }
        return measures, Targets(estimate=estimate, **Targets.ends(parts)), fields

    def _program(
        self, schema: TextSchema, aim: Estimate, rows: Sequence[OutOfSampleRows]
    ) -> Program:
        """The program of new documents, over words shared with the fixed reference."""
        shape = aim.values.shape
        entries_of = [  # positions of the words of each document among all entries
            n * shape[1]
            + np.array([schema.column_index[x] for x in one.words], np.intp)
            for n, one in enumerate(schema.documents)
        ]
        entries = np.sort(np.concatenate(entries_of))
        roots = [np.zeros(0)]
        ends = [entries[:0]]
        fixed = [np.zeros(0)]
        for row, entries_of_row in zip(rows, entries_of, strict=True):
            assert row.shared is not None, "words are shared or not"
            neighbour, word = np.nonzero(row.shared)
            roots.append(np.sqrt(2.0 * row.similarities[neighbour]))
            ends.append(np.searchsorted(entries, entries_of_row[word]))
            fixed.append(row.fixed[neighbour, word])
        root = np.concatenate(roots)
        at = np.arange(len(root)), np.concatenate(ends)
        pairs_map = OverEntries(
            sp.csr_array((root, at), (len(root), len(entries))),
            entries,
            shape,
            Components(np.arange(len(entries))),
        )
        sums = None
        if any(isinstance(row, CompleteRows) for row in rows):
            words = np.zeros(shape)
            words.ravel()[entries] = 1.0
            totals = [
                row.total if isinstance(row, CompleteRows) else 0.0 for row in rows
            ]
            sums = Completeness(np.array(totals), words)
        return self.program_of(aim, pairs_map, root * np.concatenate(fixed), sums)

    def _answer_for(self, text: str) -> tuple[TextDocument, Targets, OutOfSampleRows]:
        """A new document, its targets, and its optimum given the nearest documents."""
        settings = self.problem.settings
        points = self.problem.points
        f = self.problem.function
        reference_schema = f.text_schema
        document = reference_schema.document_of(text)
        schema = TextSchema(reference_schema.rule, document.words, (document,))
        function = replace(f, text_schema=schema)
        law = settings.law if document.n_words > 1 else "auto"
        targets = DocumentsProblem.of(settings, function, [text]).targets(law)
        index = reference_schema.column_index
        columns = np.array([index.get(x, -1) for x in document.words], np.intp)
        old = columns >= 0
        n = len(points)
        present = points[:, columns] * old != 0.0
        weighted = document.counts * rarity(n, present.sum(axis=0))
        size = math.sqrt(float((weighted**2).sum())) or 1.0
        cosines = (self.directions[:, columns] * old * (weighted / size)).sum(axis=1)
        nearest = largest_first(cosines)[: settings.nearest.n_neighbors]
        nearest = nearest[cosines[nearest] > 0.0]
        row = OutOfSampleRows(
            target=targets.estimate.values[0],
            similarities=cosines[nearest],
            fixed=self.reference.attributions[nearest][:, columns] * old,
            weights=self.weights,
            shared=present[nearest],
        )
        if targets.base is not None and document.n_words:
            ones = np.ones(document.n_words)
            row = row.complete(ones, ones, float(targets.total[0]))
        return document, targets, row


def _first(settings: CheckedSettings, data: Any) -> Any:
    """The first documents of ``data`` in canonical order, as reference."""
    texts, names = read_texts(data, "data")
    chosen = canonical_order(digests_of(texts))[: settings.nearest.n_reference].tolist()
    texts = [texts[n] for n in chosen]
    if names is None:
        return texts
    return pd.Series(texts, index=[names[n] for n in chosen])

"""From a document to what LIME tends to there: looked at first, then asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np

from propopt._typing import Truths, Values
from propopt.batches import Budget
from propopt.errors import InvalidInput
from propopt.functions.base import EXACT
from propopt.lime.text.explanation.row import DocumentLimits
from propopt.lime.text.explanation.subject import TextSubject, WordMeans, limits_of
from propopt.lime.text.reading import DocumentReading, read_documents
from propopt.lime.text.sampled import SampledWords, SizePlan, estimate_words
from propopt.structures.subsets import NoSetFunction, SetFunction
from propopt.structures.subsets.enumerated import MOST_ENUMERATED, Enumerated
from propopt.tables.text import Document


Told: TypeAlias = Callable[[int], None]
"""Told how many texts were asked for, or documents read, each time."""

_CALLS: Final = Budget(2**24, 2**11)
"""Bits of one call, after which a bar moves on."""


@final
@dataclass(frozen=True, eq=False)
class DocumentTask:
    """A document that was looked at, and what is still to be asked for it.

    Parameters
    ----------
    subject : TextSubject
        What it belongs to.
    document : Document
        The text.
    value : float
        f there; NaN if it is not known.
    read : SetFunction or NoSetFunction
        What f is, as far as it is read.
    refusal : str
        Why LIME says nothing of it; empty if it does.
    """

    subject: TextSubject
    document: Document
    value: float
    read: SetFunction | NoSetFunction
    refusal: str = ""

    @classmethod
    def all_of(cls, subject: TextSubject, told: Told) -> list[DocumentTask]:
        """The documents, with f there, and what f was read as and found to be.

        Parameters
        ----------
        subject : TextSubject
            What is asked.
        told : callable
            Told how many documents were read, each time.
        """
        found = read_documents(subject.function, subject.documents, told)
        return [
            cls._of(subject, document, own)
            for document, own in zip(subject.documents, found, strict=True)
        ]

    @classmethod
    def _of(
        cls, subject: TextSubject, document: Document, found: DocumentReading
    ) -> DocumentTask:
        refusal = found.refusal
        if not refusal and document.n_words < 2:
            refusal = _TOO_SHORT[document.n_words]
        return cls(subject, document, found.value, found.words, refusal)

    @property
    def plan(self) -> SizePlan | None:
        """Which sets are sampled; None where nothing is."""
        d, n = self.document.n_words, self.subject.n_samples
        is_read = not isinstance(self.read, NoSetFunction)
        few = d <= max(
            self.subject.max_enumerated, min(MOST_ENUMERATED, n.bit_length() - 1)
        )
        if self.refusal or is_read or few:
            return None
        return SizePlan.of(d, self.subject.law, n)

    @property
    def evaluations(self) -> int:
        """Texts that are still to be asked for."""
        if self.refusal or not isinstance(self.read, NoSetFunction):
            return 0
        plan = self.plan
        return 2**self.document.n_words if plan is None else plan.evaluations

    def done(
        self, told: Told, each: int = 0
    ) -> tuple[DocumentLimits, WordMeans | None]:
        """The limits, and what they are made of.

        Parameters
        ----------
        told : callable
            Told how many texts were asked for.
        each : int
            What it is told at the end.
        """
        found = self._done(told)
        told(each)
        return found

    def _done(self, told: Told) -> tuple[DocumentLimits, WordMeans | None]:
        if self.refusal:
            return self._without(self.refusal)
        try:
            means = self._means(told)
        except InvalidInput as error:
            return self._without(str(error))
        found = limits_of(means, np.array([self.subject.law.bandwidth]))
        errors, intercept_error = found.standard_errors, found.intercept_error
        limits = DocumentLimits(
            document=self.document,
            coefficients=found.coefficients[0].copy(),
            intercept=float(found.intercept[0]),
            value=self.value,
            standard_errors=None if errors is None else errors[0].copy(),
            intercept_error=0.0 if intercept_error is None else intercept_error[0],
            source=self._source(means),
            reason=self.read.reason if isinstance(self.read, NoSetFunction) else "",
        )
        return limits, means

    def _source(self, means: WordMeans) -> str:
        if isinstance(means, SampledWords):
            return f"estimate ({means.plan.evaluations:,} sets of words)"
        if isinstance(self.read, NoSetFunction):
            return f"{EXACT} (all {2**self.document.n_words:,} sets of words)"
        return EXACT

    def _means(self, told: Told) -> WordMeans:
        if not isinstance(self.read, NoSetFunction):
            return self.read
        evaluate = self._evaluate(told)
        plan = self.plan
        if plan is None:
            return Enumerated.of(evaluate, self.document.n_words)
        # the same numbers for all documents: answers do not depend on the others
        return estimate_words(evaluate, plan, np.random.default_rng(self.subject.seed))

    def _evaluate(self, told: Told) -> Callable[[Truths], Values]:
        def evaluate(bits: Truths) -> Values:
            parts = []
            for some in _CALLS.blocks(len(bits), bits.shape[1]):
                texts = self.document.each(bits[some])
                parts.append(self.subject.function.texts_value(texts))
                told(len(parts[-1]))
            return np.concatenate(parts)

        return evaluate

    def _without(self, reason: str) -> tuple[DocumentLimits, None]:
        return DocumentLimits.without(self.document, self.value, reason), None


_TOO_SHORT: Final = (
    "there is no word in it",
    "of one word the coefficient and the intercept cannot be told apart, as LIME "
    "always deletes it; f less f of the text without it is its effect",
)
"""Texts of no word, and of one."""

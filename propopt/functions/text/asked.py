"""A model of texts that is asked in batches, which a first few texts try."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from propopt._typing import Values
from propopt.batches import MODEL_CALLS
from propopt.errors import InvalidInput
from propopt.functions.answers import refuse_other_answers
from propopt.functions.calls import Calls
from propopt.functions.models.called import TRIAL_ROWS, Trial
from propopt.functions.models.readout import Readout
from propopt.functions.text.torch_texts import TorchTexts
from propopt.output.text import printable
from propopt.tables.names import Labels


CHARACTER_BYTES = 8
"""What a model may need for each, with what it makes of them."""

SHOWN = 60
"""Characters of a text in a message."""


@final
@dataclass(frozen=True, eq=False)
class AskedModel:
    """One output of a model of texts; what it is asked is counted.

    Parameters
    ----------
    name : str
        For messages.
    readout : Readout or TorchTexts
        Its method and output; the method is given a list of texts.
    calls : Calls
        Where texts are counted.
    batch_rows : int
        The most texts of one call.
    trial : Trial
        What is known of the model so far.
    """

    name: str
    readout: Readout | TorchTexts
    calls: Calls
    batch_rows: int = sys.maxsize
    trial: Trial = field(default_factory=Trial)

    def values(self, texts: Iterable[str]) -> Values:
        """Values of texts (n,), which may be made one after the other.

        Raises
        ------
        InvalidInput
            If the model answers the same texts twice and not alike.
        """
        parts = [self._answered(batch) for batch in self._batches(texts)]
        return np.concatenate(parts) if parts else np.empty(0)

    def finite_values(self, texts: Iterable[str]) -> Values:
        """The same, refused where one is not finite.

        Raises
        ------
        InvalidInput
            The first such text is named.
        """
        parts = []
        for batch in self._batches(texts):
            parts.append(self._answered(batch))
            self._check(parts[-1], batch)
        return np.concatenate(parts) if parts else np.empty(0)

    def _answered(self, texts: list[str]) -> Values:
        self.calls.add(len(texts))
        values = self._asked(self.readout, texts)
        if not self.trial.done:
            self._ask_twice(texts[: min(TRIAL_ROWS, self.batch_rows)])
        return values

    def _ask_twice(self, texts: list[str]) -> None:
        """Refuse a model that does not answer the first texts alike."""
        self.calls.try_out(2 * len(texts))
        first, again = (self._asked(self.readout.answers, texts) for _ in range(2))
        refuse_other_answers(first, again, self.name)
        self.trial.done = True

    def _asked(self, ask: Callable[[Any, Labels], Any], texts: list[str]) -> Any:
        """What the model says; where it fails, for which texts."""
        try:
            return ask(texts, Labels())
        except Exception as error:
            error.add_note(
                f"{self.name} was given {len(texts)} texts, of which the first is "
                f"{shown(texts[0])}"
            )
            raise

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Lists of bounded size; a single text may be larger."""
        most, batch, size = min(MODEL_CALLS.n_rows, self.batch_rows), list[str](), 0
        for text in texts:
            more = CHARACTER_BYTES * len(text)
            if batch and (len(batch) >= most or size + more > MODEL_CALLS.n_bytes):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += more
        if batch:
            yield batch

    def _check(self, values: Values, texts: list[str]) -> None:
        bad = ~np.isfinite(values)
        if bad.any():
            n = int(bad.argmax())
            raise InvalidInput(self.no_value(float(values[n]), texts[n]))

    def no_value(self, value: float, text: str) -> str:
        """What is said where a value is not finite."""
        return (
            f"{self.name}: the value is {value} for the text {shown(text)}; texts in "
            "which words are deleted, and the empty one, need finite values too"
        )


def as_texts(texts: Any, _: Labels) -> list[str]:
    """The table that a model of texts is given: a list of its own."""
    return list(texts)


def shown(text: str) -> str:
    """A text as messages have it: its beginning, on one line."""
    beginning = printable(text[:SHOWN])
    return f"'{beginning}...'" if len(text) > SHOWN else f"'{beginning}'"

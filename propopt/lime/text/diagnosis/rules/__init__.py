"""The rules of diagnosis of texts, one file for each kind."""

from __future__ import annotations

from typing import Final

from propopt.lime.diagnosis.rule import Rule
from propopt.lime.text.diagnosis.case import TextCase
from propopt.lime.text.diagnosis.rules.bandwidth import LEAVING_ONE, SIGNS
from propopt.lime.text.diagnosis.rules.fidelity import BLIND, SUM_GAP
from propopt.lime.text.diagnosis.rules.fit import COLLAPSE, SAMPLES_OF_TEXTS, SELECTION
from propopt.lime.text.diagnosis.rules.noise import WORD_NOISE, WORD_RANKING
from propopt.lime.text.diagnosis.rules.words import (
    CROSSING,
    IGNORED,
    SHARED,
    UNKNOWN_WORDS,
)


# Weights as of tables: what is read wrongly of the model comes first.
TEXT_RULES: Final[tuple[Rule[TextCase], ...]] = (
    SHARED,
    IGNORED,
    SIGNS,
    LEAVING_ONE,
    WORD_NOISE,
    WORD_RANKING,
    COLLAPSE,
    SAMPLES_OF_TEXTS,
    SELECTION,
    SUM_GAP,
    BLIND,
    CROSSING,
    UNKNOWN_WORDS,
)
"""All of them; where one does not apply it says so."""

"""Text schemas as JSON, and back."""

from __future__ import annotations

import json

import pytest
from odd_texts import ODD_TEXTS

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.documents import (
    EachOccurrence,
    PatternWords,
    VectoriserWords,
    pack_texts,
    unpack_texts,
)


RULES = [
    PatternWords(),
    PatternWords(r"[a-z]+", "_"),
    EachOccurrence(VectoriserWords(strip_accents="ascii"), ""),
    VectoriserWords(False, "unicode", r"(\w)\w*", frozenset(["a", "the"]), "-"),
]


def as_read(schema: po.TextSchema) -> dict:
    return json.loads(json.dumps(pack_texts(schema)).encode("ascii"))


@pytest.mark.parametrize("rule", RULES)
def test_there_and_back(rule):
    schema = po.TextSchema.of(list(ODD_TEXTS.values()), rule)
    again = unpack_texts(as_read(schema))
    assert (again.rule, again.vocabulary) == (schema.rule, schema.vocabulary)
    assert [d.text for d in again.documents] == list(ODD_TEXTS.values())


@pytest.mark.parametrize(
    "change",
    [
        {"rule": {"kind": "eval"}},
        {"rule": {"kind": "PatternWords", "pattern": "("}},
        {"rule": {"kind": "PatternWords", "pattern": 3}},
        {"rule": {"kind": "PatternWords", "flags": 3}},
        {"rule": None},
        {"documents": [1]},
        {"documents": None},
        {"vocabulary": ["food", "good"]},
        {"vocabulary": None},
    ],
)
def test_what_makes_no_sense_is_refused(change):
    packed = as_read(po.TextSchema.of(["good food"]))
    with pytest.raises(InvalidInput, match="its documents make no sense"):
        unpack_texts({**packed, **change})


def test_a_rule_of_ones_own_is_not_saved():
    class Own:
        filler = ""

        def find(self, text):
            return PatternWords().find(text)

    with pytest.raises(InvalidInput, match="a rule of class Own is not saved"):
        pack_texts(po.TextSchema.of(["good"], Own()))

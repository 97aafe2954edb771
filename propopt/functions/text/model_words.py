"""The words that a model of texts sees, as a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from propopt.structures.tfidf.entries import CountsWords, text_vectorisers
from propopt.structures.tfidf.vectorisers import VECTORISERS
from propopt.tables.text import PatternWords, VectoriserWords, WordRule


@final
@dataclass(frozen=True)
class NoWords:
    """Why the words of a model are not known, in a sentence.

    Parameters
    ----------
    reason : str
        Such as ``"its vectoriser counts characters"``.
    """

    reason: str


def word_rule_of(model: Any) -> WordRule | NoWords:
    """The words that a model sees; the reason where that cannot be told.

    Parameters
    ----------
    model : estimator or callable
        Such as a pipeline that begins with a vectoriser of scikit-learn.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> word_rule_of(CountVectorizer(token_pattern="[a-z]+"))
    VectoriserWords(lowercase=True, strip_accents=None, token_pattern='[a-z]+',
    stop_words=frozenset(), filler='')
    >>> word_rule_of(len)
    NoWords(reason='it begins with no vectoriser of scikit-learn')
    """
    rules = [_rule_of(vectoriser) for vectoriser in text_vectorisers(model)]
    if not rules:
        return NoWords("it begins with no vectoriser of scikit-learn")
    if any(rule != rules[0] for rule in rules):
        return NoWords("it begins with vectorisers that see other words")
    return rules[0]


def default_rule(model: Any) -> WordRule:
    """The words of a model where they are known, else those of the package ``lime``."""
    rule = word_rule_of(model)
    return PatternWords() if isinstance(rule, NoWords) else rule


def _rule_of(vectoriser: CountsWords) -> VectoriserWords | NoWords:
    if type(vectoriser) not in VECTORISERS:
        return NoWords(f"{type(vectoriser).__name__} may find words by another rule")
    told = vectoriser.get_params(deep=False)
    if told["analyzer"] != "word":
        return NoWords("its vectoriser counts characters, or in a way of its own")
    for name in ("preprocessor", "tokenizer"):
        if told[name] is not None:
            return NoWords(f"its vectoriser has a {name} of its own")
    if callable(told["strip_accents"]):
        return NoWords("its vectoriser strips accents in a way of its own")
    return VectoriserWords(
        lowercase=bool(told["lowercase"]),
        strip_accents=told["strip_accents"],
        token_pattern=told["token_pattern"],
        stop_words=frozenset(vectoriser.get_stop_words() or ()),
    )

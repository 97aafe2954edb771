"""Models of texts as functions under explanation."""

from propopt.functions.text.function import TextFunction
from propopt.functions.text.model_words import NoWords, word_rule_of
from propopt.functions.text.of_document import DocumentFunction
from propopt.functions.text.wrapping import is_for_texts, refuse_text_model, wrap_texts


__all__ = [
    "DocumentFunction",
    "NoWords",
    "TextFunction",
    "is_for_texts",
    "refuse_text_model",
    "word_rule_of",
    "wrap_texts",
]

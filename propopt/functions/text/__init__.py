"""Models of texts as functions under explanation."""

from propopt.functions.text.function import TextFunction
from propopt.functions.text.of_document import DocumentFunction
from propopt.functions.text.wrapping import wrap_texts


__all__ = ["DocumentFunction", "TextFunction", "wrap_texts"]

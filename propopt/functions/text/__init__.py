"""Models of texts as functions under explanation."""

from propopt.functions.text.function import TextFunction


__all__ = ["TextFunction"]

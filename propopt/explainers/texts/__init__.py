"""Explanations of documents, each by itself, in one table of all words.

- :mod:`propopt.explainers.texts.each`: any baseline, given each document as a function
  of which of its words are kept.
- :mod:`propopt.explainers.texts.shapley`: Shapley values by deletion of words.
"""

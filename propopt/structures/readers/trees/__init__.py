"""Fitted trees and sums of trees, read into boxes; no library of trees is imported.

- ``views``: what a part of a model sees of a table; ``steps``: what steps of pipelines
  make of it; ``resolving``: trees of what a model sees, as trees of the table, by
  ``questions`` that are asked of the steps, and ``fans`` where numbers are categories.
- ``scikit``, ``histograms``, ``lightgbm``, ``xgboost``, ``catboost``: trees of one
  library each; ``scores``: which of their scores an output is.
- ``sums``: bagging, voting, stacking and others that add up what they are made of.
- ``rounding``: thresholds of models that compare in float32; ``cells``: categories of
  boosters; ``nodes``: trees written node by node.
- ``reading``: :func:`~propopt.structures.readers.trees.reading.read_trees` and
  :func:`~propopt.structures.readers.trees.reading.read_boxes` of all.
"""

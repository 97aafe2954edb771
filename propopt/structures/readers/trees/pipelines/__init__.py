"""What trees behind steps of scikit-learn's pipelines see of each column.

- :class:`~propopt.structures.readers.trees.pipelines.views.View`: where columns come
  from.
- :func:`~propopt.structures.readers.trees.pipelines.steps.behind`: the view behind a
  step; :mod:`~propopt.structures.readers.trees.pipelines.single` has what is known of
  each kind.
"""

"""What fitted models are made of; it knows nothing of functions and explanations.

Functions use:

- ``registry``: :func:`~propopt.structures.registry.exact_network`, the scores of a
  fitted model, and :func:`~propopt.structures.registry.exact_link`, what is read from
  them; ``MODELS`` and ``TRANSFORMS`` say which classes are known.
- ``networks``: :class:`~propopt.structures.networks.Network`, differentiable scores
  with their pullback; ``links``: :class:`~propopt.structures.links.Link`, one number
  of the scores.
- ``piecewise``: :func:`~propopt.structures.piecewise.is_piecewise_constant`.
- ``boosters``: native boosters as estimators; ``pipelines``: their last step, and the
  steps that do nothing.

Networks are made of ``networks`` (affine maps, layers, chains), ``kernels``,
``feature_maps`` and ``densities``. Each file of ``readers`` makes them of one family of
fitted estimators, with a :class:`~propopt.structures.readers.base.Reader`.
"""

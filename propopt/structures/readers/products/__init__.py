"""Fitted models as sums of products of functions of one column each.

- :mod:`~propopt.structures.readers.products.networks`: scores and links of models.
- :mod:`~propopt.structures.readers.products.machines`: kernel machines.
"""

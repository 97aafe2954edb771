"""Simplicity: similar features get similar attributions, and few are not zero."""

from __future__ import annotations

from functools import cached_property
from typing import final

from propopt.graphs.base import Graph, read_graph
from propopt.losses.base import PropertyLoss
from propopt.maps import Identity, LinearMap, OverFeatures
from propopt.penalties import Absolute, Penalty, Squared
from propopt.tables.names import Labels


@final
class Smoothness(PropertyLoss):
    """Similar features get similar attributions (Tadesse et al. 2024, Eq. 4).

    Σ_n Σ_{d,d'} (w_nd − w_nd')² S_dd' over ordered pairs, equal to 2 tr(W L Wᵀ) with
    the Laplacian L of the similarities S.

    Parameters
    ----------
    graph : Graph
        Similarities S of the D features.
    name : str
        What the loss is called in weights, results and CSV columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> round(po.Smoothness(po.chain_graph(3)).value(np.array([[0.0, 1.0, 3.0]])), 9)
    10.0
    """

    def __init__(self, graph: Graph, *, name: str = "smoothness") -> None:
        self.graph = read_graph(graph)
        self.name = name

    @cached_property
    def map(self) -> LinearMap:
        return OverFeatures(self.graph.root, self.graph.components)

    @property
    def penalty(self) -> Penalty:
        return Squared()

    @property
    def n_features(self) -> int:
        return self.graph.n_nodes

    @property
    def labels(self) -> Labels:
        names = self.graph.names
        return Labels(features=None if names is None else tuple(map(str, names)))


@final
class Sparsity(PropertyLoss):
    """Few attributions are not zero: Σ_n ‖w_n‖₁ (Tadesse et al. 2024, Eq. 14).

    Parameters
    ----------
    name : str
        What the loss is called in weights, results and CSV columns.
    """

    def __init__(self, *, name: str = "sparsity") -> None:
        self.name = name

    @property
    def map(self) -> LinearMap:
        return Identity()

    @property
    def penalty(self) -> Penalty:
        return Absolute()

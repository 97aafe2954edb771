"""Exact structures of fitted models, selected by their class.

Subclasses are excluded, since they may predict by another rule. Other packages add
readers by entry points of the group ``propopt.readers``.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from propopt.base.text import Reason
from propopt.structures.fitted_model import FittedModel, as_estimator
from propopt.structures.kinds import class_name_of
from propopt.structures.networks import Affine, Chain, ScoreLink
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.fitted_networks import NETWORKS, step_map
from propopt.structures.readers.model_products import (
    network_products,
    through_view,
    why_inexact,
)
from propopt.structures.readers.pipelines import ColumnView, ModelOutput
from propopt.structures.readers.tree_models import (
    SUMS,
    ModelSum,
    exact_boxes,
    read_by_others,
    rest_of_pipeline,
    scale_of_target,
)
from propopt.structures.scores import Link, Network


def exact_network(model: Any) -> Network | None:
    """The differentiable scores of a fitted model; None if there is no rule for it."""
    fitted = FittedModel.of(model)
    model = fitted.estimator
    if type(model) is Pipeline:
        *before, final = fitted.steps
        maps = [*map(step_map, before), exact_network(final)]
        networks = [network for network in maps if network is not None]
        # one map after another, the first innermost
        return reduce(Chain, networks) if len(networks) == len(maps) else None
    if type(model) is TransformedTargetRegressor:
        return _in_units_of_target(model)
    reader = NETWORKS.get(class_name_of(model))
    return None if reader is None or reader.link is None else reader.network(model)


def exact_link(model: Any, output: str, index: int, n_scores: int) -> Link | None:
    """The exact link from the scores of a model to one of its outputs, or None."""
    final = FittedModel.of(model).final
    if type(final) is TransformedTargetRegressor:
        return ScoreLink("identity", index) if output == "value" else None
    reader = NETWORKS.get(class_name_of(final))
    if reader is None or reader.link is None:
        return None
    return reader.link(final, ModelOutput(output, index), n_scores)


def _in_units_of_target(model: Any) -> Network | None:
    """The scores of a model with a scaled target, or None if it is not affine."""
    units, inner = scale_of_target(model.transformer_), model.regressor_
    network = exact_network(inner)
    if units is None or network is None or network.n_scores != 1:
        return None
    if exact_link(inner, "value", 0, 1) != ScoreLink("identity"):
        return None
    slope, intercept = map(float, units)
    return Chain(network, Affine(np.array([[slope]]), np.array([intercept])))


def exact_products(
    model: Any, output: ModelOutput, view: ColumnView
) -> SumOfProducts | Reason:
    """An output as a sum of products, boxes for trees; or the reason why not."""
    model = as_estimator(model)
    boxes = exact_boxes(model, output, view)
    if boxes is not None:
        return boxes
    if type(model) is Pipeline:
        model, view = rest_of_pipeline(model, view)
    network = exact_network(model)
    if network is not None:
        return _of_network(model, network, output, view)
    sums = SUMS.get(class_name_of(model))
    if sums is not None:
        return _added(sums(model, output, view), view)
    match read_by_others(model, output, view):
        case SumOfProducts() as read:
            return through_view(read, view)
        case Reason() as reason:
            return reason
        case _:
            return Reason(why_inexact(model, output, view))


def _of_network(
    model: Any, network: Network, output: ModelOutput, view: ColumnView
) -> SumOfProducts | Reason:
    link = exact_link(model, output.name, output.column, network.n_scores)
    if link is None:
        return Reason(
            f"the {output.name} of a {type(model).__name__} is made of its scores by a "
            "rule without an exact form; wrap(model, output='margin') is exact"
        )
    function = network_products(network, link, len(view.sources))
    if isinstance(function, Reason):
        return function
    return through_view(function, view)


def _added(total: ModelSum | Reason, view: ColumnView) -> SumOfProducts | Reason:
    """The sum of the parts, or the reason why a part is no sum of products."""
    if isinstance(total, Reason):
        return total
    parts = [SumOfProducts.constant(total.base, view.n_columns)]
    for weight, model, output, part_view in total.parts:
        part = exact_products(model, output, part_view)
        if isinstance(part, Reason):
            return part
        parts.append(part.scaled(weight))
    return SumOfProducts.sum_of(parts)

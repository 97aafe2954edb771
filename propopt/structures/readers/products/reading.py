"""Sums of products of whatever fitted models are, by the columns of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from sklearn.pipeline import Pipeline

from propopt.structures.links import Link
from propopt.structures.networks import Network
from propopt.structures.products import NoProducts, SumOfProducts
from propopt.structures.readers.products.columns import through_view
from propopt.structures.readers.products.networks import network_products
from propopt.structures.readers.products.unread import why_unread
from propopt.structures.readers.trees.pipelines.steps import behind
from propopt.structures.readers.trees.pipelines.views import View
from propopt.structures.readers.trees.reading import read_boxes
from propopt.structures.readers.trees.scores import TreeOutput
from propopt.structures.readers.trees.sums import SUMS, ModelSum


@final
@dataclass(frozen=True)
class Networks:
    """What reads the scores of models, and what is made of them.

    Parameters
    ----------
    network : callable
        From a fitted model to its scores, or None.
    link : callable
        From a fitted model, an output, its index and the number of scores to what
        reads it, or None.
    """

    network: Callable[[Any], Network | None]
    link: Callable[[Any, str, int, int], Link | None]


def model_products(
    model: Any, output: TreeOutput, view: View, networks: Networks
) -> SumOfProducts | NoProducts:
    """The sum of products of an output of a fitted model.

    Parameters
    ----------
    model : estimator
        Fitted.
    output : TreeOutput
        What is wanted of it.
    view : View
        What it is given.
    networks : Networks
        What reads models that are no trees.

    Returns
    -------
    SumOfProducts or NoProducts
        The latter says why it is none.
    """
    if type(model) is Pipeline:
        model, view = _behind_columns(model, view)
    network = networks.network(model)
    if network is not None:
        return _of_network(model, network, output, view, networks)
    if type(model) in SUMS:
        return _added(SUMS[type(model)](model, output, view), view, networks)
    boxes = read_boxes(model, output, view)
    if boxes is not None:
        return boxes.as_products()
    return NoProducts(why_unread(model, output, view))


def _behind_columns(model: Pipeline, view: View) -> tuple[Any, View]:
    """The rest of a pipeline behind steps that each make columns of one, and its view.

    The last estimator alone is no pipeline.
    """
    for place, (_, step) in enumerate(model.steps[:-1]):
        seen = behind(step, view)
        if seen is None:
            return Pipeline(model.steps[place:]), view
        view = seen
    return model.steps[-1][1], view


def _of_network(
    model: Any, network: Network, output: TreeOutput, view: View, networks: Networks
) -> SumOfProducts | NoProducts:
    index = output.index or 0
    link = networks.link(model, output.name, index, network.n_scores)
    if link is None:
        return NoProducts(
            f"the {output.name} of a {type(model).__name__} is made of its scores by a "
            "rule that is not read; wrap(model, output='margin') is exact"
        )
    function = network_products(network, link, len(view.sources))
    if isinstance(function, NoProducts):
        return function
    return through_view(function, view)


def _added(
    total: ModelSum | NoProducts, view: View, networks: Networks
) -> SumOfProducts | NoProducts:
    """The sum of the parts, or why one of them is none."""
    if isinstance(total, NoProducts):
        return total
    parts = [SumOfProducts.constant(total.base, view.n_columns)]
    for weight, model, output, seen in total.parts:
        part = model_products(model, output, seen, networks)
        if isinstance(part, NoProducts):
            return part
        parts.append(part.scaled(weight))
    return SumOfProducts.sum_of(parts)

"""The law that an explainer of the ``lime`` package draws from.

Its bins, frequencies and kernel width are read, whatever they were made of, and its
conventions with them, errors included: 1e-11 is on top of each deviation, and a bin
whose ends are equal is drawn as (low − mean) / sd.
"""

import numpy as np

from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.tables.frames import Labels


def law_of_package(explainer):
    """That of a ``lime.lime_tabular.LimeTabularExplainer`` with bins."""
    numbers = explainer.discretizer.lambdas
    columns = [
        _numbers(explainer, j) if j in numbers else _codes(explainer, j)
        for j in range(len(explainer.feature_names))
    ]
    names = tuple(map(str, explainer.feature_names))
    counted = names == tuple(map(str, range(len(names))))
    width = float(explainer.base.kernel_fn.keywords["kernel_width"])
    return TabularLaw.of(columns, width, Labels(features=None if counted else names))


def _numbers(explainer, j):
    """Bins of numbers; where both ends are equal (low − mean) / sd is drawn."""
    result = explainer.discretizer
    edges = np.asarray(result.lambdas[j].__defaults__[0], np.float64)
    low, high, mean, sd = (
        np.asarray(part[j], np.float64)
        for part in (result.mins, result.maxs, result.means, result.stds)
    )
    frequencies = np.zeros(len(mean))
    indices = np.asarray(explainer.feature_values[j]).astype(np.intp)
    frequencies[indices] = explainer.feature_frequencies[j]
    ends = edges[np.isfinite(edges)]  # above ∞ there is no bin
    low, high, mean, sd, frequencies = (
        part[: len(ends) + 1] for part in (low, high, mean, sd, frequencies)
    )
    start, stop = (low - mean) / sd, (high - mean) / sd
    single, shares = start == stop, frequencies / frequencies.sum()
    moments = np.where(single, start, mean), sd
    return BinnedColumn.of_numbers(ends, moments, (low, high), single, shares)


def _codes(explainer, j):
    names = explainer.categorical_names.get(j)
    values = np.asarray(explainer.feature_values[j], np.float64)
    order = np.argsort(values)
    values = values[order]
    frequencies = np.asarray(explainer.feature_frequencies[j], np.float64)[order]
    words = [f"{v:.17g}" if names is None else str(names[int(v)]) for v in values]
    return BinnedColumn.of_codes(values, frequencies, words)

"""What a model of texts is read as, believed once it is what the model answers."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Truths
from propopt.functions.text import TextFunction
from propopt.structures.subsets import NoSetFunction, SetFunction
from propopt.structures.subsets.sets import random_sets
from propopt.tables.text import Document


_N_COMPARED: Final = 16
"""Random sets of words, beside all words, none, and some words alone left out."""

_TOLERANCE: Final = 1e-5
"""Of max(1, |f|): what boosted trees in single precision may differ by."""


def checked_subsets(
    function: TextFunction, document: Document
) -> SetFunction | NoSetFunction:
    """The function of the words of a document, if it is what the model answers there.

    It is compared with the model at the document, at the text without words, with some
    words left out, and at random sets of words.

    Parameters
    ----------
    function : TextFunction
        f.
    document : Document
        Any.

    Returns
    -------
    SetFunction or NoSetFunction
        The reason names the largest difference, where there is one.

    Raises
    ------
    InvalidInput
        If the model has no finite value there.
    """
    read = function.subsets(document)
    if isinstance(read, NoSetFunction):
        return read
    bits = compared_sets(document.n_words)
    told, values = read.value(bits), function.texts_value(document.each(bits))
    errors = np.abs(told - values) / np.maximum(1.0, np.abs(values))
    worst = int(np.argmax(errors))
    if errors[worst] <= _TOLERANCE:
        return read
    return NoSetFunction(
        f"what the model was read as, {read!r}, differs from its answer by "
        f"{errors[worst]:.2g} of max(1, |f|) with {int(bits[worst].sum())} of "
        f"{document.n_words} words kept"
    )


def compared_sets(n_words: int) -> Truths:
    """Sets of words at which what was read is compared with the model, as bits.

    Parameters
    ----------
    n_words : int
        d.
    """
    rng = np.random.default_rng(0)
    alone = ~np.eye(n_words, dtype=bool)[rng.permutation(n_words)[:_N_COMPARED]]
    sizes = rng.integers(0, n_words + 1, _N_COMPARED)
    ends = np.array([[True], [False]]).repeat(n_words, axis=1)
    return np.concatenate([ends, alone, random_sets(n_words, sizes, rng)])

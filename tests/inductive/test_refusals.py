"""What an inductive explainer refuses, in which words."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from refusals import refused
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels

import propopt as po
from propopt import inductive
from propopt.base.errors import InvalidInput
from propopt.functions import Sine
from propopt.inductive import bases


def fit(*arguments, gradients=None, function=None, **settings):
    explainer = inductive.GaussianProcessExplainer(**settings)
    return explainer.fit(*arguments, gradients=gradients, function=function)


NAMES = {**vars(inductive), **vars(bases), **vars(kernels), "Sine": Sine, "fit": fit}
NAMES |= {
    "X": np.arange(8.0).reshape(4, 2) ** 2,
    "np": np,
    "pd": pd,
    "po": po,
    "sp": sp,
}


@pytest.mark.parametrize(("call", "words"), refused(__file__, NAMES))
def test_what_cannot_be_used_is_refused(call, words):
    with pytest.raises((InvalidInput, NotFittedError), match=words):
        call()

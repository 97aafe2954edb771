"""What losses, their algebra and graphs refuse, and in which words."""

import re

import catalogue
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from refusals import refused

import propopt as po
from propopt.base.errors import InvalidInput


NAMES = {**vars(catalogue), "np": np, "pd": pd, "po": po, "sp": sp}


@pytest.mark.parametrize(("call", "words"), refused(__file__, NAMES))
def test_what_cannot_be_used_is_refused(call, words):
    with pytest.raises((InvalidInput, TypeError)) as raised:
        call()
    told = "TypeError" if raised.type is TypeError else str(raised.value)
    assert re.search(words, told)

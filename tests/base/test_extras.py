"""Optional packages: what is missing is told apart from what does not fit."""

import importlib

import pytest

from propopt.base.errors import MissingExtra
from propopt.base.extras import require


@pytest.mark.parametrize(
    ("message", "error"),
    [  # as the linker of Linux says under a limit of memory, and without the package
        ("libarrow.so.2600: failed to map segment from shared object", MemoryError),
        ("libparquet.so: cannot open: Cannot allocate memory", MemoryError),
        ("No module named 'pyarrow'", MissingExtra),
        ("lib.so: cannot allocate memory in static TLS block", MissingExtra),
    ],
)  # fmt: skip
def test_a_library_that_memory_does_not_hold_is_not_missing(
    message, error, monkeypatch
):
    def refuse(_):
        raise ImportError(message)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(error, match="pyarrow"):
        require("pyarrow.dataset")

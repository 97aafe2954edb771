"""Files of a test, in a folder of its own."""

from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="file.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text

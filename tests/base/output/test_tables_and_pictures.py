"""Tables of pages and terminals, and pictures: nothing is lost, all is repeatable."""

from __future__ import annotations

from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from propopt.base.files import write_svg


def drawing(height=1.0):
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1], [0, height])
    axes.set_title("a title")
    return figure


def test_the_same_figure_is_the_same_file(tmp_path):
    for name in ("one", "two"):
        write_svg(drawing(), tmp_path / f"{name}.svg", salt="tiny")
    first = (tmp_path / "one.svg").read_bytes()
    assert first == (tmp_path / "two.svg").read_bytes()
    assert b"<dc:date>" not in first
    write_svg(drawing(1.001), tmp_path / "two.svg", salt="tiny")
    assert first != (tmp_path / "two.svg").read_bytes()


def test_a_picture_is_xml_whatever_the_settings_of_the_user(tmp_path):
    with mpl.rc_context({"svg.hashsalt": "mine"}):
        write_svg(drawing(), tmp_path / "one.svg", salt="tiny")
        assert mpl.rcParams["svg.hashsalt"] == "mine"
    ElementTree.parse(tmp_path / "one.svg")


def test_a_picture_that_cannot_be_drawn_leaves_the_old_one(tmp_path):
    target = tmp_path / "one.svg"
    write_svg(drawing(), target, salt="tiny")
    before = target.read_bytes()
    broken = drawing()
    broken.axes[0].set_title("$\\nothing$")
    with pytest.raises(ValueError, match="nothing"):
        write_svg(broken, target, salt="tiny")
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]

"""What a chart has drawn: words, bars, and lines across them."""

from matplotlib.figure import Figure


def ax():
    return Figure(layout="constrained").subplots()


def texts(labels):
    return [label.get_text() for label in labels]


def rows_of(axes):
    return texts(axes.get_yticklabels())


def bars_of(axes):
    """Bars from top to bottom."""
    return sorted(axes.patches, key=lambda bar: bar.get_y())


def lengths_of(axes):
    return [bar.get_width() for bar in bars_of(axes)]


def hatched_in(axes):
    return [bool(bar.get_hatch()) for bar in bars_of(axes)]


def lines_of(axes):
    """The ends of lines across bars, without those that are not finite."""
    return [line[:, 0] for line in axes.collections[0].get_segments() if line.size]

"""Formulas as MathML, which browsers display without scripts or requests."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number


PAIR = re.compile(
    r"(?<!left)(?<!right)(\\\|)(.*?)(\\\|)|(?<!left)(\\langle\b)(.*?)(\\rangle\b)"
)
"""Pairs of norms and brackets, which get the height of their contents."""


def written(node: nodes.Element, block: bool) -> str:
    """The formula of a node; an unsupported formula stops the build."""
    text = PAIR.sub(r"\\left\1\4\2\5\\right\3\6", node.astext())
    try:
        return tex2mathml(text, as_block=block)
    except MathError as error:
        where = f"{node.source}:{node.line}"
        raise ExtensionError(f"{where}: {error} in {node.astext()!r}") from None


def inline(writer, node):
    """A formula within a sentence."""
    writer.body.append(written(node, block=False))
    raise nodes.SkipNode


def display(writer, node):
    """A displayed formula with its number."""
    number = ""
    if node["number"]:
        shown = get_node_equation_number(writer, node)
        number = f'<span class="eqno">({shown})</span>'
    head = writer.starttag(node, "div", CLASS="math")
    writer.body.append(f"{head}{number}{written(node, block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer, which Sphinx prefers to MathJax."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Formulas as MathML, which browsers show by themselves: no script, no font, no request."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number


def written(node: nodes.Element, block: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        where = f"{node.source}:{node.line}"
        raise ExtensionError(f"{where}: {error} in {node.astext()!r}") from None


def inline(writer, node):
    writer.body.append(written(node, block=False))
    raise nodes.SkipNode


def display(writer, node):
    number = ""
    if node["number"]:
        shown = get_node_equation_number(writer, node)
        number = f'<span class="eqno">({shown})</span>'
    head = writer.starttag(node, "div", CLASS="math")
    writer.body.append(f"{head}{number}{written(node, block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

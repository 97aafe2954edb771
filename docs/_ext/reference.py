"""Pages of the public names: what Sphinx shows of a class, and how it finds names."""

import inspect
import re
import sys

import propopt as po


# `propopt.graphs` is an attribute of the package; viewcode and autodoc import modules
NAMESPACES = {
    f"propopt.{name}": getattr(po, name)
    for name in ("graphs", "explainers", "metrics", "null_models", "errors")
}

# docstrings have formulas as they are read in a terminal; MathJax has these signs
TEX = {
    "Σ": r"\sum",
    "Π": r"\prod",
    "‖": r"\|",
    "∇": r"\nabla ",
    "∘": r"\circ ",
    "−": "-",
    "·": r"\cdot ",
    "²": "^2",
    "½": r"{1/2}",
    "⁻¹": "^{-1}",
    "ᵀ": r"^\top ",
    "Ĝ": r"\hat{G}",
    "Φ": r"\Phi",
    "φ": r"\varphi",
    "σ": r"\sigma",
    "ω": r"\omega",
    "Λ": r"\Lambda",
    "β": r"\beta",
    "α": r"\alpha",
    "π": r"\pi",
    "ε": r"\varepsilon",
    "≥": r"\ge ",
    "≤": r"\le ",
    "∈": r"\in ",
    "₀": "_0",
    "₁": "_1",
}


def is_foreign(member: object) -> bool:
    """Whether a member is inherited from scikit-learn, pydantic or Python."""
    made = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return not (getattr(made, "__module__", None) or "propopt").startswith("propopt")


def skip_foreign(app, what, name, member, skip, options):  # noqa: ARG001
    return True if is_foreign(member) else None


def tex(formula: str) -> str:
    r"""A formula as the docstring has it, in LaTeX: ``w_nn' ≥ 0`` is ``w_{nn'} \ge 0``."""
    formula = re.sub(r"_([A-Za-z]+'?)", r"_{\1}", formula)
    formula = re.sub(r"(?<![\\_{\w])[A-Za-z]{2,}\b( [A-Za-z]{2,}\b)*", _words, formula)
    return "".join(TEX.get(sign, sign) for sign in re.split("(⁻¹|.)", formula) if sign)


def _words(match: re.Match[str]) -> str:
    known = {"tr", "max", "min", "exp", "log", "cos"}
    word = match[0]
    return rf"\operatorname{{{word}}}" if word in known else rf"\;\text{{{word}}}\;"


def set_formulas(app, what, name, member, options, lines):  # noqa: ARG001
    """In blocks of ``.. math::`` the signs of the docstring become LaTeX."""
    depth = None
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() == ".. math::":
            depth = indent
        elif depth is not None and line.strip():
            if indent > depth:
                lines[at] = " " * indent + tex(line.strip())
            else:
                depth = None


def find_name(app, env, node, text):  # noqa: ARG001
    """A name as a docstring has it, `Explanation` or `propopt.losses.Sparsity`."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    parts = node["reftarget"].split(".")
    for start in range(len(parts)):
        tail = "." + ".".join(parts[start:])
        found = [name for name in domain.objects if name.endswith(tail)]
        if len(found) == 1:
            return domain.resolve_xref(
                env, node["refdoc"], app.builder, "obj", found[0], node, text
            )
    return None


def setup(app):
    sys.modules.update(NAMESPACES)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", set_formulas, priority=900)
    app.connect("missing-reference", find_name, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

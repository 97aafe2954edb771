"""Pages of the public names: their order, their groups, and links to them."""

import importlib
import pydoc
import re
import sys
import types
from itertools import pairwise
from pathlib import Path

from groups import GROUPS

import propopt as po
from propopt.results.result import Result


def located(path: str) -> object:
    """The object of a path, also where a function hides the module of its name."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:
        return pydoc.locate(path)


def with_chapters(text: str) -> str:
    """A page, with the public classes of a chapter for ``~propopt.losses.maps.*``."""
    return re.sub(r"^   ~([\w.]+)\.\*$", _chapter, text, flags=re.MULTILINE)


def _chapter(match: re.Match[str]) -> str:
    module, flat = match[1], dir(po)
    room = module.rpartition(".")[0]
    public = pydoc.locate(room)
    names = (n for n in public.__all__ if getattr(public, n).__module__ == module)
    return "\n".join(f"   ~{'propopt' if n in flat else room}.{n}" for n in names)


# each name is in one of the tables: ``~propopt.results.Explanation``
PAGES = sorted(Path(__file__).parents[1].glob("reference/*.md"))
TABLES = {
    page.stem: re.findall(
        r"^   ~([\w.]+)$", with_chapters(page.read_text("utf-8")), re.MULTILINE
    )
    for page in PAGES
}
PATHS = [path for table in TABLES.values() for path in table]
# of `Explainer` and `Explanation` those outside of propopt.shap
NAMES = {
    path.rpartition(".")[2]: path
    for path in sorted(PATHS, key=lambda path: not path.startswith("propopt.shap."))
}
TYPES = {
    "array": "numpy.ndarray",
    "numpy.random.Generator": "numpy.random.Generator",
    "Generator": "numpy.random.Generator",
    "RandomState": "numpy.random.RandomState",
    "DataFrame": "pandas.DataFrame",
    "Series": "pandas.Series",
    "Axes": "matplotlib.axes.Axes",
    "estimator": "sklearn.base.BaseEstimator",
    "kernel": "sklearn.gaussian_process.kernels.Kernel",
    "path": "pathlib.Path",
    "Path": "pathlib.Path",
    "callable": "collections.abc.Callable",
    "mapping": "collections.abc.Mapping",
    "sequence": "collections.abc.Sequence",
    "iterable": "collections.abc.Iterable",
    **{word: word for word in ("None", "bool", "dict", "float", "int", "str", "tuple")},
    **{word: word for word in ("list", "scalar")},
}


# `propopt.graphs` is an attribute of the package; viewcode and autodoc import modules
NAMESPACES = {
    f"propopt.{name}": getattr(po, name)
    for name in ("graphs", "explainers", "null_models", "errors")
}

# docstrings have formulas for terminals: "Σ_n ‖w_n‖²"
SIGNS = "Σ sum, Π prod, ∇ nabla, ∘ circ, · cdot, ≥ ge, ≤ le, ∪ cup"
TEX = {sign: rf"\{name} " for sign, name in re.findall(r"([^\s,]) (\w+)", SIGNS)}
TEX |= {"−": "-", "∌": r"\not\ni ", "ᵀ": r"^\top ", "²": "^2", "½": "{1/2}", "₁": "_1"}
TEX |= {"‖": r"\text{‖}", "|": r"\text{|}"}  # without stretching


def write_stubs(app) -> None:
    """Write a page for each name to ``reference/api``, which is not committed."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    pages = {f"{path}.rst": stub(path) for path in PATHS}
    for old in folder.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        page = folder / name
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")


def stub(path: str) -> str:
    """The page of a name: a heading and the directive for its kind."""
    thing, name = located(path), path.rpartition(".")[2]
    head = f"{name}\n{'=' * len(name)}\n\n"
    if isinstance(thing, types.FunctionType):
        return f"{head}.. autofunction:: {path}\n"
    if not isinstance(thing, type):
        return f"{head}.. autodata:: {path}\n   :no-value:\n"
    if issubclass(thing, BaseException):
        return f"{head}.. autoexception:: {path}\n   :members:\n   :show-inheritance:\n"
    bases = [kind.__name__ for kind in thing.__mro__[1:] if is_public(kind)]
    lines = [f".. autoclass:: {path}", "   :members:"]
    if not (getattr(thing, "_is_protocol", False) or issubclass(thing, dict)):
        lines.append(f"   :inherited-members: {', '.join(bases)}".rstrip())
    if bases:
        lines += ["", f"   It has the members of :class:`{bases[0]}` as well."]
    return head + "\n".join(lines) + "\n"


def is_public(kind: type) -> bool:
    """Whether a class has a page."""
    name = kind.__name__
    return name in NAMES and located(NAMES[name]) is kind


def is_result(thing: object) -> bool:
    """Whether it is a class of results, which users do not create."""
    return isinstance(thing, type) and issubclass(thing, Result)


def expand_chapters(app, name, source):  # noqa: ARG001
    """Expand tables of whole chapters when Sphinx reads a page."""
    if name.startswith("reference/"):
        source[0] = with_chapters(source[0])


def hide_signature(app, what, name, thing, options, signature, result):  # noqa: ARG001
    """Hide signatures of results; their fields are listed below."""
    return ("", "") if is_result(thing) else None


def is_foreign(member: object) -> bool:
    """Whether a member is inherited from scikit-learn, pydantic or Python."""
    made = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return not (getattr(made, "__module__", None) or "propopt").startswith("propopt")


def skip_foreign(app, what, name, member, skip, options):  # noqa: ARG001
    """Omit members that are inherited from other packages."""
    return True if is_foreign(member) else None


WORDS = re.compile(
    r"(\{.*?\})|([A-Za-z]{2,}(?: [A-Za-z]{2,})*)(?![A-Za-z])(?=([_([])?)"
)


def tex(formula: str) -> str:
    r"""A formula of a docstring in LaTeX: ``w_nn' ≥ 0`` is ``w_{nn'} \ge 0``."""
    formula = re.sub(r"_([A-Za-z]+'?[A-Za-z]*)", r"_{\1}", formula.replace(r"\|", "|"))
    return "".join(TEX.get(sign, sign) for sign in WORDS.sub(_words, formula))


def _words(match: re.Match[str]) -> str:
    index, words, bracket = match.groups()
    if index:  # `{j in both}`, and mostly `{n,n'}`
        return re.sub(r"( [a-z]{2,}.*)}", r"\\text{\1}}", index)
    if bracket:
        return rf"\mathrm{{{words}}}"
    return rf"\;\text{{{words}}}\;" if " " in words else rf"\text{{{words}}}"


# ---- the order of a page: summary, example, parameters in groups, notes


HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)


def sections_of(text: str) -> dict[str, str]:
    """A docstring by the headings of numpydoc; the text above them has the name ""."""
    parts = HEADING.split(text)
    return dict(
        zip(["", *parts[1::2]], (x.strip("\n") for x in parts[::2]), strict=True)
    )


def arranged(text: str) -> str:
    """A docstring with its example below the first paragraph and its details last."""
    sections = sections_of(text)
    summary, *rest = re.split(r"\n\n+", sections.pop("").strip())
    shown = [x for x in rest if x.startswith(">>>")]
    example = "\n\n".join([*shown, sections.pop("Examples", "")]).strip()
    rest = [x for x in rest if x not in shown]
    if not example:
        return text
    head = [summary]
    if rest and re.match(r"[\w`*]", rest[0]) and not rest[0].endswith(":"):
        head.append(rest.pop(0))
    head += [".. rubric:: Example", example]
    notes = "\n\n".join([*rest, sections.pop("Notes", "")]).strip()
    references = sections.pop("References", "")
    parts = {**sections, "Notes": notes, "References": references}
    for title, body in parts.items():
        if body:
            head.append(f"{title}\n{'-' * len(title)}\n{body}")
    return "\n\n".join(head)


def arrange(app, what, name, member, options, lines):  # noqa: ARG001
    """Put each part of a docstring in the order of a page, before numpydoc reads it."""
    lines[:] = arranged("\n".join(lines)).split("\n")


def group_parameters(app, what, name, member, options, lines):  # noqa: ARG001
    """Put long lists of parameters under the titles of their groups."""
    field = ":Attributes:" if is_result(member) else ":Parameters:"
    if name in GROUPS and field in lines:
        start = lines.index(field)
        fields = (n for n in range(start + 1, len(lines)) if lines[n][:1].strip())
        stop = next(fields, len(lines))
        lines[start:stop] = grouped(name, lines[start + 1 : stop])


ENTRY = re.compile(r"^    \*\*(.+?)\*\*(?: : |$)")


def grouped(name: str, lines: list[str]) -> list[str]:
    """The entries of a field, in the order of the groups of their page."""
    starts = [at for at, line in enumerate(lines) if ENTRY.match(line)]
    entries = {}
    for start, stop in pairwise([*starts, len(lines)]):
        first = ENTRY.match(lines[start])[1].replace("\\", "").split(", ")[0]
        entries[first] = [*lines[start:stop], ""]
    result = []
    for title, names in GROUPS[name].items():
        result += [f":{title}:", ""]
        for parameter in names.split():
            result += entries.pop(parameter, [])
    if entries:
        raise ValueError(f"{name}: parameters of no group: {', '.join(entries)}")
    return result


BAR = re.compile(r"(``.*?``)|(?<!\\)\|")


LETTER = re.compile(r"^( *)([A-Za-z]\.( |$))")


def escape(app, what, name, member, options, lines):  # noqa: ARG001
    """Escape |w|, which is no substitution, and "D." at the start of a line."""
    code = False
    for at, line in enumerate(lines):
        if line == "Parameters" and is_result(member):
            lines[at : at + 2] = ["Attributes", "----------"]
            continue
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code:
            line = LETTER.sub(r"\1\\\2", line)
            lines[at] = BAR.sub(lambda match: match[1] or r"\|", line)


def set_formulas(app, what, name, member, options, lines):  # noqa: ARG001
    """Turn formulas in blocks of ``.. math::`` into LaTeX."""
    text, depth = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() == ".. math::":
            depth = indent
        elif depth is not None and line.strip() and indent <= depth:
            depth = None
        elif depth is not None and line.strip():
            if not text[-1].strip() and text[-2].strip() != ".. math::":
                text += [" " * depth + ".. math::", ""]  # one for each formula
            line = " " * indent + tex(line.strip())
        text.append(line)
    lines[:] = text


def find_name(app, env, node, text):
    """Resolve names in docstrings: `Explanation`, `propopt.losses.Sparsity`, `fit`."""
    if node.get("refdomain") != "py":
        return None
    parts = node["reftarget"].split(".")
    paths = [
        ".".join([NAMES[part], *parts[at + 1 :]])
        for at, part in enumerate(parts)
        if part in NAMES and (at == 0 or parts[0] == "propopt")
    ]
    if kind := pydoc.locate(f"{node.get('py:module')}.{node.get('py:class')}"):
        bases = (base for base in kind.__mro__ if is_public(base))
        paths += [f"{NAMES[base.__name__]}.{parts[-1]}" for base in bases]
    domain, page = env.domains.python_domain, node["refdoc"]
    links = (
        domain.resolve_xref(env, page, app.builder, "obj", path, node, text)
        for path in paths
    )
    return next(filter(None, links), None)


def link_types(app, config):  # noqa: ARG001
    """Link types of parameters to our classes and to those of the inventories."""
    classes = {name: place for name, place in NAMES.items() if name[0].isupper()}
    config.numpydoc_xref_aliases = {**classes, **TYPES}


def setup(app):
    """Register the handlers with Sphinx."""
    sys.modules.update(NAMESPACES)
    app.add_css_file("reference.css")
    app.connect("config-inited", link_types, priority=100)
    app.connect("builder-inited", write_stubs)
    app.connect("source-read", expand_chapters)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-signature", hide_signature, priority=100)
    app.connect("autodoc-process-docstring", arrange, priority=50)
    app.connect("autodoc-process-docstring", escape, priority=100)
    app.connect("autodoc-process-docstring", group_parameters, priority=600)
    app.connect("autodoc-process-docstring", set_formulas, priority=900)
    app.connect("missing-reference", find_name, priority=300)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Sphinx: ``sphinx-build docs build/docs``; code cells of pages are run for it."""

import sys
from pathlib import Path


HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "propopt"
author = "The propopt developers"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_block"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]

# ---- the reference: `_ext/reference.py` writes a page for each name of its tables
extensions += [
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "reference",
]
nitpicky = True  # each name that a docstring refers to is found
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False
intersphinx_mapping = {
    name: (address, str(HERE / "inventories" / f"{name}.inv"))
    for name, address in {
        "cvxpy": "https://www.cvxpy.org/",
        "matplotlib": "https://matplotlib.org/stable/",
        "numpy": "https://numpy.org/doc/stable/",
        "pandas": "https://pandas.pydata.org/docs/",
        "python": "https://docs.python.org/3/",
        "sklearn": "https://scikit-learn.org/stable/",
    }.items()
}
numpydoc_show_class_members = False
numpydoc_xref_ignore = "all"
numpydoc_xref_param_type = True
smartquotes_action = "De"  # quotes are those of the code: {"l2", "l1"}
toc_object_entries_show_parents = "hide"
viewcode_line_numbers = True

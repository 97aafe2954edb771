"""Sphinx: ``sphinx-build docs build/docs``; what pages compute is run for it.

Nothing is asked of the network: fonts are the reader's, formulas are MathML.
"""

import os
import sys
from datetime import date
from pathlib import Path

import propopt


HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.pop("MPLBACKEND", None)  # or cells of pages have no figures
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # of shap's bars, in cells

project = "propopt"
author = "The propopt developers"
version = release = propopt.__version__
copyright = f"{date.today().year}, {author}. This is {project} {version}"
extensions = [
    "myst_nb",
    "mathml",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_ext", "gallery/**/*.ipynb", "gallery/*.ipynb"]

# ---- pages and what they compute
myst_enable_extensions = [
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
    "fieldlist",
]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
copybutton_exclude = ".linenos, .gp, .go"

# ---- the gallery; examples/more has what needs other packages, or long
sphinx_gallery_conf = {
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "copyfile_regex": "",
    "download_all_examples": False,
    "examples_dirs": "../examples",
    "filename_pattern": r"\.py$",
    "gallery_dirs": "gallery",
    "ignore_repr_types": "sklearn",
    "image_srcset": ["2x"],
    "min_reported_time": 10_000,
    "notebook_extensions": set(),
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "gallery.apply_style"),
    "show_signature": False,
    "subsection_order": [
        f"../examples/{door}" for door in ("explain", "check", "lime", "interactions")
    ],
    "thumbnail_size": (640, 448),
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
}

# ---- how it looks
html_theme = "pydata_sphinx_theme"
html_title = "propopt"
html_static_path = ["_static"]
html_favicon = "_static/logo.svg"
html_css_files = ["site.css", "gallery.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"**": ["sidebar-nav-bs"], "index": [], "gallery/index": []}
html_theme_options = {
    "collapse_navigation": True,
    "footer_end": [],
    "footer_start": ["copyright"],
    "header_links_before_dropdown": 6,
    "icon_links": [],
    "logo": {
        "image_dark": "_static/logo.svg",
        "image_light": "_static/logo.svg",
        "text": f"{project} {version}",
        "alt_text": "",
    },
    "navbar_align": "left",
    "navigation_with_keys": False,
    "search_as_you_type": True,
    "search_bar_text": "Search",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
}

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

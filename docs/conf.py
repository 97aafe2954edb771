"""Sphinx: ``sphinx-build docs build/docs``."""

project = "propopt"
author = "The propopt developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

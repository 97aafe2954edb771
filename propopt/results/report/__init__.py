"""Results as one page: chapters of each, and the templates that lay them out."""

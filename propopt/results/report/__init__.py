"""Pages of results: their chapters, and the templates that lay them out."""

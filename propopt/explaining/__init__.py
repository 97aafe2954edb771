"""One line from a model and a table to an explanation, with stated defaults."""

"""The subject of all jobs: a table, a target, a model and its function."""

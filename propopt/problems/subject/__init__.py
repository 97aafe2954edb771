"""What all jobs share: a table, a target, a model and its function."""

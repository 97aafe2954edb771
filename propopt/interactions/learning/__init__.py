"""What a learner is given: tables, targets, weights, and pipelines without columns."""

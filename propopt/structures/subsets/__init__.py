"""Functions of sets of words, whose means over sets of one size are known exactly."""

"""Functions of sets of words, with exact means over all sets of one size."""

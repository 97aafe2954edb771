"""Learners without sets of features, judged on rows that are held out."""

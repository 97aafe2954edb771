"""Errors, checks, files, words, threads: what everything else stands on."""

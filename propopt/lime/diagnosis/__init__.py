"""The diagnosis of misleading coefficients of LIME."""

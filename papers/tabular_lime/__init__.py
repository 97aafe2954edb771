"""Looking deeper into tabular LIME: its coefficients in closed form."""

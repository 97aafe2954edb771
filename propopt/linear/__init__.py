"""Linear algebra that loses nothing: components, products, LAPACK with its reports."""

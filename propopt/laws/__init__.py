"""Laws of inputs around each row, and estimates from draws under them."""

"""Tables of people: names of rows and columns, cells, categories; numbers and back."""

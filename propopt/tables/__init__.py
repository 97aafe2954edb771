"""Tables of people: names, cells, columns, documents; numbers and back."""

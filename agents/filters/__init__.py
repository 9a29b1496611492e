"""What the query parameters of lists mean: rows to narrow, or a 422."""

"""Forms of pages: what people typed, read into what actions take."""

"""Rows of batches in their wire form."""

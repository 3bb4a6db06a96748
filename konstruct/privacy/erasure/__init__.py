"""Erases a person or messages in every store, with a receipt."""

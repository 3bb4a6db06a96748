"""Extraction: a language model proposes facts of conversations; code checks them."""

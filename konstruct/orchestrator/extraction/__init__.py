"""Extraction: a language model, or rules, propose facts of conversations; code checks them."""

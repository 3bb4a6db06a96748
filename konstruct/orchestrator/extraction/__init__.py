"""Extraction: a language model, or rules, find facts in conversations; code checks them."""

"""Extraction: facts are found in conversations by a language model or by rules."""

"""Words and sentences: the lexemes that are indexed, and the pieces that are embedded. Pure."""

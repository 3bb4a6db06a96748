"""What makes an operator trust the system with people's words: the ledger, erasure, the proof of
isolation, and archives. The highest layer: it knows every store."""

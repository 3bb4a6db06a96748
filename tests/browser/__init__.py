"""Browser tests. A package, so that its browser and its tenant end with its last test."""

"""A package, so that its browser and its tenant end with it and not with the whole run."""

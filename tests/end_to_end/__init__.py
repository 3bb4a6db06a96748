"""A package, so that its deployment ends with it and not with the whole run."""

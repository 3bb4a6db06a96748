"""Resources of the API: a class for each resource, with a method for each call."""

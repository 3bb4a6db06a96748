"""Import of history: lines of the API, and the files of other systems."""

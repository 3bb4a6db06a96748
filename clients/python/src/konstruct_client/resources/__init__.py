"""What the API has: a class for each kind of thing, with a method for each call."""

"""The form of every error, and at which addresses it is told in which form."""

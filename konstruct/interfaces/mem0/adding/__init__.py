"""Adding: the texts that a request has, and the facts that the language model extracts of them."""

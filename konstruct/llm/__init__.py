"""Language models: an LLM pool, any OpenAI-compatible server, or the built-in responder."""

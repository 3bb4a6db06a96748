"""From an accepted message to its reply: agents, prompts, language models, the pipeline."""

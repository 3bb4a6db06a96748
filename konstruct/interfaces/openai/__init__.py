"""OpenAI's interface: chat completions by agents, with their memory of each user."""

"""OpenAI's interface: chat completions by agents, with what they remember of each user."""

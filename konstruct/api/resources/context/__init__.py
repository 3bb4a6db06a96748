"""What a model is given: windows, sessions of graphs with their checkpoints, and prompts."""

"""OpenAI's chat completions: requests in the form that a server takes, and what its answers mean."""

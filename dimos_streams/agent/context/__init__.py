"""What a model sees: the conversation, results and images, rendered as messages and kept within bounds."""

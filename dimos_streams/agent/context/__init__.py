"""The context of a model: the conversation, results and images, rendered as messages and kept within bounds."""

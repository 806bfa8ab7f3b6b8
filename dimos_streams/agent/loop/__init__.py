"""The loop: turns of a model that reacts to messages and calls tools."""

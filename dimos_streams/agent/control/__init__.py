"""Operators' control of an agent: pause and step, commands, dialogues, stop words, undo, the hold on the robot."""

"""The operator's hand on an agent: pause and step, commands, dialogues, stop words, undo, the hold on the robot."""

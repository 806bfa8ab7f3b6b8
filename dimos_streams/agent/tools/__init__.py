"""The agent's own tools, offered to the model beside the skills."""

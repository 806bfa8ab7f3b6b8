"""`/mcp`: skills and calls for clients of the Model Context Protocol."""

"""How operations are asked for: over MCP and on the command line."""

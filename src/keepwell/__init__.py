"""keepwell: a local-first memory for coding assistants.

`keepwell.open()` gives the library face: the same operations that assistants reach over MCP.
"""

__version__ = "0.1.0"

"""The floor of `startup.py`: a hand-written stdio loop over the standard library that answers `initialize`.

`bare_server.py DATABASE` reads lines of JSON-RPC until its input ends. It opens the database as any server must.
"""

import json
import sqlite3
import sys


def main(database: str) -> None:
    """Answer every request as if it were `initialize`."""
    connection = sqlite3.connect(database)
    connection.execute("SELECT count(*) FROM memories").fetchone()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            version = message["params"]["protocolVersion"]
            about = {"name": "bare", "version": "0"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])

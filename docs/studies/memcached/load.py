"""Load a memcached server over its text protocol: load.py set|get|get-hits. `load.py empty` checks that it has no item.

A test sends 40,000 requests (MEMCACHED_REQUESTS; half as many sets) for keys from a set of 10,000 (a quarter), drawn
with the test's seed, so that every trial sends the same requests. The rate is the server's own count (cmd_set, cmd_get,
get_hits of its `stats`) divided by the duration of the load; `hits` is the share of gets that found their key. Like
programs with a cache, `get-hits` sets each missing key; `get` does not. MEMCACHED_ADDRESS is the server's address
(127.0.0.1:11211).
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
import sys
import time

ADDRESS = os.environ.get("MEMCACHED_ADDRESS", "127.0.0.1:11211")
MOST = int(os.environ.get("MEMCACHED_REQUESTS", "40000"))
KEYS, VALUE = MOST // 4, b"v" * 100
REQUESTS = {"set": MOST // 2, "get": MOST, "get-hits": MOST}
COUNTERS = {"set": "cmd_set", "get": "cmd_get", "get-hits": "get_hits"}
BATCH = 50
"""The number of outstanding requests on one connection."""
PATIENCE_S = 5.0


class Client:
    """One connection."""

    def __init__(self) -> None:
        host, _, port = ADDRESS.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, requests: bytes, answers: int, end: bytes) -> bytes:
        """Send the requests, and receive this many complete answers."""
        self._socket.sendall(requests)
        got, seen = bytearray(), 0
        while seen < answers:
            part = self._socket.recv(1 << 16)
            if not part:
                raise ConnectionError("the server has closed the connection")
            got += part
            seen = got.count(end)
        return bytes(got)

    def stats(self) -> dict[str, int]:
        text = self.ask(b"stats\r\n", 1, b"END\r\n").decode()
        return {name: int(value) for name, value in re.findall(r"STAT (\w+) (\d+)\r", text)}

    def sets(self, keys: list[bytes]) -> None:
        asked = b"".join(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(VALUE), VALUE) for key in keys)
        self.ask(asked, len(keys), b"STORED\r\n")

    def gets(self, keys: list[bytes]) -> set[bytes]:
        """The keys that the server had."""
        got = self.ask(b"".join(b"get %b\r\n" % key for key in keys), len(keys), b"END\r\n")
        return set(re.findall(rb"VALUE (\S+) ", got))


def load(client: Client, name: str) -> dict[str, float]:
    draw = random.Random(name)
    keys = [b"key-%d" % draw.randrange(KEYS) for _ in range(REQUESTS[name])]
    before, begun = client.stats(), time.perf_counter()
    for at in range(0, len(keys), BATCH):
        batch = keys[at : at + BATCH]
        if name == "set":
            client.sets(batch)
        else:
            found = client.gets(batch)
            if name == "get-hits" and (missed := [key for key in batch if key not in found]):
                client.sets(missed)
    seconds = time.perf_counter() - begun
    after = client.stats()
    done = {counter: after[counter] - before[counter] for counter in COUNTERS.values()}
    made = {"rate": done[COUNTERS[name]] / seconds, "seconds": seconds}
    if name != "set":
        made["hits"] = 100 * done["get_hits"] / done["cmd_get"]
    return made


def connect() -> Client:
    """Wait for the server, which may have just been started."""
    limit = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Client()
        except OSError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.02)


def main(what: str) -> int:
    try:
        client = connect()
        if what == "empty":
            items = client.stats()["curr_items"]
            if items:
                sys.exit(f"load.py: {ADDRESS} still holds {items} items: it was not restarted")
        elif what in REQUESTS:
            sys.stdout.write(json.dumps(load(client, what)) + "\n")
        else:
            sys.exit(f"load.py: {what!r}: one of {', '.join(REQUESTS)}, empty")
    except OSError as error:
        sys.exit(f"load.py: no memcached answers at {ADDRESS}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))

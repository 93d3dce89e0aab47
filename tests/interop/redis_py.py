"""redis-py's Lock, as a client of the interop tests (see client.hpp). It knows one node: this is not Redlock.

python3 redis_py.py redis://127.0.0.1:6379
"""

import os
import random
import sys
import time

import redis


class Client:
    def __init__(self, uri: str) -> None:
        self.node = redis.Redis.from_url(uri)
        self.node.ping()
        self.lock = None

    def acquire(self, resource: str, ttl: str) -> str:
        lock = self.node.lock(resource, timeout=int(ttl) / 1000, blocking=False, thread_local=False)
        if not lock.acquire():
            return "taken"
        self.lock = lock
        return "held"

    def extend(self, ttl: str) -> str:
        try:
            self.lock.extend(int(ttl) / 1000, replace_ttl=True)
        except redis.exceptions.LockError:
            return "lost"
        return "held"

    def release(self) -> str:
        try:
            self.lock.release()
        except redis.exceptions.LockError:
            return "lost"
        return "released"

    def contend(self, directory: str, resource: str, milliseconds: str) -> str:
        witness = os.path.join(directory, "held")
        end = time.monotonic() + int(milliseconds) / 1000
        holds = overlaps = 0
        while time.monotonic() < end:
            if self.acquire(resource, "30000") == "held":
                try:
                    os.close(os.open(witness, os.O_CREAT | os.O_EXCL))
                    holds += 1
                    time.sleep(0.002)
                    os.unlink(witness)
                except FileExistsError:
                    overlaps += 1
                if self.release() != "released":
                    raise RuntimeError("a hold has lapsed")
            time.sleep(random.uniform(0.001, 0.010))
        return f"{holds} holds {overlaps} overlaps"


def main() -> None:
    client = Client(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *words = line.split()
        print(getattr(client, verb)(*words), flush=True)


main()

"""The Lock of redis-py, as a client of the interop tests (see interop_test.cpp) and of the benchmark (see
bench/peer.hpp), which sets NODE_TIMEOUT_MS. It knows one node only, so this is not Redlock.

python3 redis_py.py redis://127.0.0.1:6379
"""

import json
import os
import random
import sys
import time

import redis
from redis.cluster import ClusterNode, RedisCluster


class Client:
    def __init__(self, uri: str) -> None:
        timeout = float(os.environ.get("NODE_TIMEOUT_MS", 0)) / 1000
        cluster = "redis+cluster://"
        if uri.startswith(cluster):
            servers = [server.split(":") for server in uri[len(cluster) :].split(",")]
            self.node = RedisCluster(startup_nodes=[ClusterNode(host, int(port)) for host, port in servers])
        else:
            self.node = redis.Redis.from_url(uri, socket_timeout=timeout or None)
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

    def measure(self, ops: str, milliseconds: str) -> str:
        """Measures a number of ops, or for a duration. Returns the time of each op."""
        took, failed = [], 0
        start = time.perf_counter_ns()
        end = start + int(milliseconds) * 1_000_000
        while len(took) + failed < int(ops) and start < end:
            try:
                lock = self.node.lock("bench:redis-py", timeout=10, thread_local=False)
                acquired = lock.acquire(blocking=False)
                if acquired:
                    lock.release()
            except Exception:
                acquired = False
            now = time.perf_counter_ns()
            if acquired:
                took.append((now - start) / 1000)
            else:
                failed += 1
            start = now
        return json.dumps({"failed": failed, "microseconds": took})


def main() -> None:
    client = Client(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *words = line.split()
        print(getattr(client, verb)(*words), flush=True)


main()

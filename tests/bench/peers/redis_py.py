"""redis-py's Lock, as a peer of the benchmark (see peer.hpp). It knows one node: this is not Redlock.

    python3 redis_py.py redis://127.0.0.1:6379
"""

import json
import sys
import time


def main() -> None:
    try:
        import redis
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), flush=True)
        return
    node = redis.Redis.from_url(sys.argv[1], socket_timeout=0.05)
    node.ping()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        _, ops, milliseconds = line.split()
        print(json.dumps(run(node, int(ops), int(milliseconds))), flush=True)


def run(node, ops: int, milliseconds: int) -> dict:
    took, failed = [], 0
    start = time.perf_counter_ns()
    end = start + milliseconds * 1_000_000
    while len(took) + failed < ops and start < end:
        try:
            lock = node.lock("bench:redis-py", timeout=10, thread_local=False)
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
    return {"failed": failed, "microseconds": took}


main()

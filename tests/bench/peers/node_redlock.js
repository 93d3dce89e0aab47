// node-redlock over ioredis, as a peer of the benchmark (see peer.hpp).
//
//     NODE_PATH=build/bench/npm/node_modules node node_redlock.js redis://127.0.0.1:6379 ...
"use strict";

const readline = require("node:readline");

function say(line) {
  process.stdout.write(JSON.stringify(line) + "\n");
}

function load() {
  try {
    return { Redis: require("ioredis"), Redlock: require("redlock").default };
  } catch (error) {
    say({ absent: error.message.split("\n")[0] });
    process.exit(0);
  }
}

async function run(redlock, ops, milliseconds) {
  const microseconds = [];
  let failed = 0;
  let start = process.hrtime.bigint();
  const end = start + BigInt(milliseconds) * 1_000_000n;
  while (microseconds.length + failed < ops && start < end) {
    let acquired = true;
    try {
      const lock = await redlock.acquire(["bench:node-redlock"], 10_000);
      await lock.release();
    } catch {
      acquired = false;
    }
    const now = process.hrtime.bigint();
    if (acquired) microseconds.push(Number(now - start) / 1000);
    else failed += 1;
    start = now;
  }
  return { failed, microseconds };
}

async function main() {
  const { Redis, Redlock } = load();
  const nodes = process.argv.slice(2).map((uri) => {
    const options = { commandTimeout: 50, connectTimeout: 50 };
    const node = uri.startsWith("unix://") ? new Redis(uri.slice(7), options) : new Redis(uri, options);
    node.on("error", () => {}); // a node that is down is what we measure
    return node;
  });
  while (!(await Promise.allSettled(nodes.map((node) => node.ping()))).every((ping) => ping.value)) {}
  const redlock = new Redlock(nodes);
  redlock.on("error", () => {});
  say({ ready: true });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [, ops, milliseconds] = line.split(" ");
    say(await run(redlock, Number(ops), Number(milliseconds)));
  }
}

main();

// node-redlock over ioredis, as a client of the interop tests (see interop_test.cpp) and of the benchmark (see
// bench/peer.hpp), which sets NODE_TIMEOUT_MS.
//
//     NODE_PATH=.../node_modules node node_redlock.js redis://127.0.0.1:6379 ...
//     NODE_PATH=.../node_modules node node_redlock.js redis+cluster://127.0.0.1:7000,127.0.0.1:7001
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const Redis = require("ioredis");
const { default: Redlock, ExecutionError, ResourceLockedError } = require("redlock");

const timeout = Number(process.env.NODE_TIMEOUT_MS) || undefined;
const nodes = process.argv.slice(2).map((uri) => {
  const cluster = /^redis[+]cluster:..(.*)/.exec(uri);
  if (cluster) return new Redis.Cluster(cluster[1].split(",").map((server) => `redis://${server}`));
  const node = new Redis(uri.replace(/^unix:../, ""), { commandTimeout: timeout, connectTimeout: timeout });
  node.on("error", () => {}); // a node that is down affects the outcome of the lock
  return node;
});
// The benchmark uses the defaults, and the interop tests use single attempts.
const redlock = new Redlock(nodes, timeout ? {} : { retryCount: 0, automaticExtensionThreshold: 0 });
redlock.on("error", () => {}); // errors of single nodes; the outcome is thrown as well
let lock = null;

// Returns the result of `verb`, or `otherwise` if it found no majority.
async function attempt(verb, otherwise) {
  try {
    return await verb();
  } catch (error) {
    if (error instanceof ExecutionError || error instanceof ResourceLockedError) return otherwise;
    throw error;
  }
}

const acquire = (resource, ttl) =>
  attempt(async () => {
    lock = await redlock.acquire([resource], Number(ttl));
    return "held";
  }, "taken");

const extend = (ttl) =>
  attempt(async () => {
    lock = await lock.extend(Number(ttl));
    return "held";
  }, "lost");

const release = () =>
  attempt(async () => {
    await lock.release();
    return "released";
  }, "lost");

async function contend(directory, resource, milliseconds) {
  const witness = path.join(directory, "held");
  const end = Date.now() + Number(milliseconds);
  let holds = 0;
  let overlaps = 0;
  while (Date.now() < end) {
    if ((await acquire(resource, 30_000)) === "held") {
      try {
        fs.closeSync(fs.openSync(witness, "wx"));
        holds += 1;
        await sleep(2);
        fs.unlinkSync(witness);
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
        overlaps += 1;
      }
      if ((await release()) !== "released") throw new Error("a hold has lapsed");
    }
    await sleep(1 + Math.random() * 9);
  }
  return `${holds} holds ${overlaps} overlaps`;
}

// Measures a number of ops, or for a duration. Returns the time of each op.
async function measure(ops, milliseconds) {
  const microseconds = [];
  let failed = 0;
  let start = process.hrtime.bigint();
  const end = start + BigInt(milliseconds) * 1_000_000n;
  while (microseconds.length + failed < Number(ops) && start < end) {
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
  return JSON.stringify({ failed, microseconds });
}

async function main() {
  while (!(await Promise.allSettled(nodes.map((node) => node.ping()))).every((ping) => ping.value)) {}
  console.log("ready");
  const verbs = { acquire, extend, release, contend, measure };
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split(" ");
    console.log(await verbs[verb](...words));
  }
}

main();

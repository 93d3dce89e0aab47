// node-redlock as one of many processes that want one resource. It behaves like contender.cpp, and prints the same
// output.
//
//     NODE_PATH=.../node_modules node node_redlock_contender.js RETRY-DELAY-MS HOLD-MS START-NS MILLISECONDS
"use strict";

const { setTimeout: sleep } = require("node:timers/promises");
const Redis = require("ioredis");
const { default: Redlock, ExecutionError, ResourceLockedError } = require("redlock");

const [delay, hold, start, span] = process.argv.slice(2).map(Number);
const nodes = process.env.REDLOCK_NODES.split(",").map((uri) => new Redis(uri));
const redlock = new Redlock(nodes, { retryCount: 0 });
redlock.on("error", () => {}); // errors of single nodes; the outcome is thrown as well

// Returns the time of CLOCK_MONOTONIC.
const now = () => Number(process.hrtime.bigint());
const end = start + span * 1e6;

async function acquireUntilEnd() {
  for (;;) {
    try {
      return await redlock.acquire(["bench:wanted"], 10_000);
    } catch (error) {
      if (!(error instanceof ExecutionError || error instanceof ResourceLockedError)) throw error;
    }
    const pause = delay * (0.5 + Math.random() / 2);
    if (now() + pause * 1e6 >= end) return null;
    await sleep(pause);
  }
}

async function contend() {
  const lines = [];
  await Promise.all(nodes.map((node) => node.ping()));
  await sleep(Math.max(0, (start - now()) / 1e6));
  for (let wanted = now(); wanted < end; wanted = now()) {
    const lock = await acquireUntilEnd();
    lines.push(`${wanted} ${now()} ${lock ? 1 : 0}`);
    if (!lock) break;
    await sleep(hold);
    await lock.release();
  }
  console.log([...lines, "commands -1"].join("\n"));
  nodes.forEach((node) => node.disconnect());
}

contend();

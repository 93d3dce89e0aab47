-- Acquires several resources, or one resource in a form that SET NX PX cannot express:
--
-- - on a node with a *quarantine*, which is the time for which a node declines to vote after it may have lost its data
--   (see check_vote() in quarantine.lua). The *marker* is the key in which the node stores since when it has had its
--   data.
-- - for a *waiter*, a client that has waited in the queue of the resource. It is identified there by a *ticket*. The
--   script first takes the ticket out of the queue, and deletes the reservation of the resource for this waiter, if
--   there is one (see prelude.lua). It does so even if the attempt is then refused. The waiter enters the queue again,
--   and keeps its place, because the order depends on the time for which it has waited.
-- - with *counters*: each node counts the holders of each resource. The largest count becomes the fencing token of the
--   lock. This script is the first round of fencing, and raise_counts is the second.
--
-- KEYS: the resources, [the queue], [their counters], [the marker].
-- ARGV: owner (a random value, new for each attempt to acquire), number of resources, ttl, [ticket of the waiter],
-- [expiry of the counters], [quarantine].
-- An argument in brackets can be empty. Then its key is missing: the queue goes with the ticket, the counters with
-- their expiry, and the marker with the quarantine. `counters` is the index of the first counter in KEYS, or false.
-- Returns 0 if a resource was not free; otherwise the largest count, or 1 without counters. If the node has no vote,
-- returns a status during the quarantine, and otherwise an error.
local n, ticket, expiry = tonumber(ARGV[2]), ARGV[4], ARGV[5]
local counters = expiry ~= '' and (ticket == '' and n + 1 or n + 2)
if ticket ~= '' then leave_queue(KEYS[n + 1], ticket) end
local data, failure = check_vote(counters)
if failure then return failure end
for i = 1, n do
  if redis.call('exists', KEYS[i]) == 1 then return 0 end
end
local count = 1
if counters then
  count, failure = count_holder(data, n, counters, expiry)
  if failure then return failure end
end
for i = 1, n do redis.call('set', KEYS[i], ARGV[1], 'px', ARGV[3]) end
return count

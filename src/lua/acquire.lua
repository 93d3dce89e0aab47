-- Acquires several resources, or one resource in a form that SET NX PX cannot express:
--
-- - on a node with a *quarantine*, which is the time for which a node declines to vote after it may have lost its data
--   (see check_vote() in quarantine.lua). The *marker* is the key in which the node stores since when it has had its
--   data.
-- - for a *waiter*, a client that has waited in the queue of the resource. It is identified there by a *ticket*. The
--   script first takes the ticket out of the queue, and deletes the reservation of the resource for this waiter, if
--   there is one (see prelude.lua).
-- - with *counters*: each node counts the holders of each resource. The largest count becomes the fencing token of the
--   lock. This script is the first round of fencing, and raise_counts is the second.
--
-- KEYS: the resources, [the queue], [their counters], [the marker]. Keys in brackets are there if their argument is not
-- empty.
-- ARGV: owner (a random value, new for each attempt to acquire), number of resources, ttl, [ticket of the waiter],
-- [expiry of the counters], [quarantine].
-- Returns 0 if a resource was not free; otherwise the count, or 1 without counters. Returns a status or an error if the
-- node has no vote.
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

-- Raises the *counters* of this node to the fencing token. In a counter, a node counts the holders of a resource
-- (acquire.lua). The largest count of all nodes is the fencing token.
-- KEYS: the resources, their counters, [the *marker*, in which the node stores since when it has had its data].
-- ARGV: owner (the random value of one acquisition), number of resources, fencing token, expiry of the counters,
-- [*quarantine*: the time for which a node does not vote after it may have lost its data, see quarantine.lua]. If
-- the quarantine is empty, the marker is missing.
-- Returns 0 if a resource does not hold the owner, otherwise what raise_counters() in prelude.lua returns. If the node
-- has no vote, returns a status during the quarantine, and otherwise an error.
local n = tonumber(ARGV[2])
local data, failure = check_vote(true)
if failure then return failure end
for i = 1, n do
  if redis.call('get', KEYS[i]) ~= ARGV[1] then return 0 end
end
return raise_counters(data, n, n + 1)

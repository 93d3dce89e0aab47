-- Raises the counters of the resources to the fencing token. A *counter* is a key in which the node counts the holders
-- of a resource. The largest count of all nodes is the fencing token. In the second round of fencing, this script
-- raises the counters of the nodes that have counted fewer holders.
-- KEYS: the resources, their counters, [the marker if the quarantine is not empty].
-- ARGV: owner (a random value, new for each attempt to acquire), number of resources, fencing token, expiry of the
-- counters, [quarantine]. The quarantine is the time for which a node declines to vote after it may have lost its data
-- (see check_vote() in quarantine.lua). The marker is the key in which the node stores since when it has had its data.
-- Returns 0 if a resource does not hold the owner, otherwise what raise_counters() in prelude.lua returns. If the node
-- has no vote, returns a status during the quarantine, and otherwise an error.
local n = tonumber(ARGV[2])
local data, failure = check_vote(true)
if failure then return failure end
for i = 1, n do
  if redis.call('get', KEYS[i]) ~= ARGV[1] then return 0 end
end
return raise_counters(data, n, n + 1)

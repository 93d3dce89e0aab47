-- Extends several resources, or one resource on a node with a *quarantine*: the time for which a node does not vote
-- after it may have lost its data (quarantine.lua). Never shortens the remaining time, because an extension that
-- arrives late must not undo a later one with a longer ttl.
-- KEYS: the resources, [the *marker*, in which the node stores since when it has had its data].
-- ARGV: owner (the random value of one acquisition), number of resources, ttl, [quarantine]. If the quarantine is
-- empty, the marker is missing.
-- Returns 1 if every resource still holds the owner, otherwise 0. If the node has no vote, returns a status during the
-- quarantine, and otherwise an error. Ends with the error WRONGTYPE of GET if a resource has another type.
local n = tonumber(ARGV[2])
local _, failure = check_vote(false)
if failure then return failure end
for i = 1, n do
  if redis.call('get', KEYS[i]) ~= ARGV[1] then return 0 end
end
for i = 1, n do
  if redis.call('pttl', KEYS[i]) < tonumber(ARGV[3]) then redis.call('pexpire', KEYS[i], ARGV[3]) end
end
return 1

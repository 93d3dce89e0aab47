-- Raises the counters of the resources to the fencing token (the second round of fencing).
-- KEYS: the resources, their counters, [the marker if the quarantine is not empty].
-- ARGV: owner, number of resources, fencing token, expiry of the counters, [quarantine].
-- Returns 1 if the counters were raised, and 0 if a resource does not hold the owner or a counter is missing. Returns
-- the negated largest count if the token is too far ahead of the server's clock.
local n = tonumber(ARGV[2])
local data, failure = check_vote(true)
if failure then return failure end
for i = 1, n do
  if redis.call('get', KEYS[i]) ~= ARGV[1] then return 0 end
end
return raise_counters(data, n, n + 1)

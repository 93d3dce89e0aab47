-- Extends several resources, or one resource on a node with a quarantine. Never shortens the remaining time.
-- KEYS: the resources, the marker if there is a quarantine. ARGV: owner, ttl, number of resources, quarantine.
-- Returns 1 if every resource still holds the owner, otherwise 0.
local no_vote = check_quarantine()
if no_vote then return no_vote end
local n = tonumber(ARGV[3])
for i = 1, n do
  if redis.call('get', KEYS[i]) ~= ARGV[1] then return 0 end
end
for i = 1, n do
  if redis.call('pttl', KEYS[i]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[i], ARGV[2]) end
end
return 1

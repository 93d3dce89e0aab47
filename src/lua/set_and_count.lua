-- Acquires as set_all does, and counts the holders of each resource (fencing).
-- KEYS: the resources, their counters, the marker if there is a quarantine.
-- ARGV: owner, ttl, number of resources, expiry of the counters, quarantine.
-- Returns the count, or 0 if a resource was not free.
local data, no_vote = check_counting()
if no_vote then return no_vote end
local n = tonumber(ARGV[3])
if any_exists(n) then return 0 end
local fence, failure = count_holder(data, n)
if failure then return failure end
set_resources(n)
return fence

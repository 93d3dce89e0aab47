-- Acquires several resources, or one resource on a node with a quarantine, as SET NX PX does for one.
-- KEYS: the resources, the marker if there is a quarantine. ARGV: owner, ttl, number of resources, quarantine.
-- Returns 1 if every resource was free, otherwise 0.
local no_vote = check_quarantine()
if no_vote then return no_vote end
local n = tonumber(ARGV[3])
if any_exists(n) then return 0 end
set_resources(n)
return 1

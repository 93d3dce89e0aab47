-- Acquires a resource for a waiter: leaves the queue, then acquires as SET NX PX does.
-- KEYS: the resource, its queue, the marker if there is a quarantine.
-- ARGV: owner, ticket, ttl, number of resources (always 1), quarantine.
-- Returns 1 if the resource was free, otherwise 0.
leave_queue()
local no_vote = check_quarantine()
if no_vote then return no_vote end
local n = tonumber(ARGV[3])
if any_exists(n) then return 0 end
set_resources(n)
return 1

-- Acquires a resource for a waiter, and counts the holders (fencing): leaves the queue, then acquires as set_and_count
-- does.
-- KEYS: the resource, its queue, its counter, the marker if there is a quarantine.
-- ARGV: owner, ticket, ttl, number of resources (always 1), expiry of the counter, quarantine.
-- Returns the count, or 0 if the resource was not free.
leave_queue()
local data, no_vote = check_counting()
if no_vote then return no_vote end
local n = tonumber(ARGV[3])
if any_exists(n) then return 0 end
local fence, failure = count_holder(data, n)
if failure then return failure end
set_resources(n)
return fence

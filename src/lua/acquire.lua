-- Acquires several resources, or one resource in a form that SET NX PX cannot express: on a node with a quarantine, for
-- a waiter, or with counters (the first round of fencing). A waiter first leaves its queue and deletes its reservation.
-- KEYS: the resources, [the queue], [their counters], [the marker]. Keys in brackets are there if their argument is not
-- empty.
-- ARGV: owner, number of resources, ttl, [ticket of the waiter], [expiry of the counters], [quarantine].
-- Returns 0 if a resource was not free; otherwise the count, or 1 without counters.
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

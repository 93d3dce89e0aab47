-- Acquires several resources, or one resource in a form that SET NX PX cannot express: on a node with a quarantine, for
-- a waiter, or with counters (the first round of fencing). A waiter first leaves its queue and deletes its reservation.
-- KEYS: the resources, [their queues], [their counters], [the marker], see read_layout().
-- ARGV: owner, layout, ttl, ticket of the waiter (or empty), expiry of the counters, quarantine.
-- Returns 0 if a resource was not free; otherwise the count, or 1 without counters.
local n, first = read_layout()
if first.q then leave_queue(KEYS[first.q], ARGV[4]) end
local data, failure = check_vote(first)
if failure then return failure end
for i = 1, n do
  if redis.call('exists', KEYS[i]) == 1 then return 0 end
end
local count = 1
if first.c then
  count, failure = count_holder(data, n, first.c, ARGV[5])
  if failure then return failure end
end
for i = 1, n do redis.call('set', KEYS[i], ARGV[1], 'px', ARGV[3]) end
return count

-- Releases resources and wakes the next waiter of each. If the key does not hold the owner, the next waiter is woken as
-- well, because it may get a majority on the other nodes. There are two exceptions: a release that is repeated, and a
-- resource that is reserved for a waiter that was woken already. An error in the queue does not prevent the deletion of
-- the key. A release without waiters, the most frequent case, does no more than compare_and_delete.
-- KEYS: the resources, their queues.
-- ARGV: owner, ticket of a waiter that leaves the queue (or empty), reservation ttl, '1' unless this release is
-- repeated.
-- Returns 1 if all resources held the owner, otherwise 0; adds 2 if a waiter was woken.
if ARGV[2] == '' and #KEYS == 2 and redis.call('exists', KEYS[2]) == 0 then
  if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end
end
local n = #KEYS / 2
local deleted, woken = 0, 0
for i = 1, n do
  local held = redis.call('get', KEYS[i])
  local ours = held == ARGV[1]
  if ours then deleted = deleted + redis.call('del', KEYS[i]) end
  if ARGV[2] ~= '' then redis.pcall('zrem', KEYS[n + i], ARGV[2]) end
  local reserved = held and string.find(held, '|', 1, true)
  if (ours or (ARGV[4] == '1' and not reserved)) and wake_next(KEYS[i], KEYS[n + i], ARGV[3]) == 1 then
    woken = 2
  end
end
return (deleted == n and 1 or 0) + woken

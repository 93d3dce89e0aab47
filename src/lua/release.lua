-- Releases several resources, or one resource that has a queue or a minimum hold time: deletes each resource that still
-- holds the owner.
--
-- With LockOptions::min_hold, a resource stays unavailable for a minimum time after it was acquired. If a part of this
-- time remains, the script replaces the owner by a value that belongs to nobody, for the remaining time. To shorten the
-- expiry of the owner's value would not be enough. An extension that arrives late would then find the owner and restore
-- the whole ttl. The client sends a release with a remaining minimum hold time without queues, because there is nothing
-- to wake a waiter for.
--
-- A queue has the *tickets* of the clients that wait for a resource. With queues, the script can wake the next waiter
-- of each resource (see wake_next() in prelude.lua). It may do so even if the resource does not hold the owner: this
-- node may have lost the key or never had it, and the waiter may get a majority on the other nodes. The first row that
-- applies decides:
--
--     the resource holds the owner                                | wakes the next waiter
--     the resource is reserved for a waiter that was woken        | wakes nobody
--     the release is repeated: ARGV[6] is empty                   | wakes nobody, because the earlier release may have
--                                                                 | woken a waiter
--     otherwise                                                   | wakes the next waiter
--
-- A waiter that leaves the queue without an attempt sends a release, too. Both its owner and its ticket (ARGV[1] and
-- ARGV[4]) are the ticket of this waiter. If the resource is reserved for this waiter, it holds the owner, and the
-- first row applies. Such a release is always sent with an empty ARGV[6], but another row takes the place of the third:
--
--     the ticket was in the queue, and is removed now             | wakes nobody: the waiter was not woken
--     the ticket is not in the queue                              | wakes the next waiter: this one was probably
--                                                                 | woken, and passes the wake-up on
--
-- An error in a queue does not prevent the deletion. (If EXISTS fails, the script goes on, and the next command fails.)
-- KEYS: the resources, [their queues if the reservation ttl is not empty].
-- ARGV: owner (a random value, new for each attempt to acquire), number of resources, [remaining minimum hold time],
-- [ticket of a waiter that leaves the queue], [reservation ttl], ['1' unless this release is repeated].
-- Returns 1 if all resources held the owner, otherwise 0; adds 2 if a waiter was woken.
local n = tonumber(ARGV[2])
local released, woken = 0, 0
for i = 1, n do
  local held = redis.call('get', KEYS[i])
  local ours = held == ARGV[1]
  if ours and ARGV[3] ~= '' then
    redis.call('set', KEYS[i], 'redlock:min-hold', 'px', ARGV[3])
  elseif ours then
    redis.call('del', KEYS[i])
  end
  if ours then released = released + 1 end
  local queue = KEYS[n + i]
  if queue and redis.pcall('exists', queue) ~= 0 then
    local was_woken = ARGV[4] ~= '' and redis.pcall('zrem', queue, ARGV[4]) == 0
    local reserved = held and is_ticket(held)
    local may_wake = ours or ((ARGV[6] == '1' or was_woken) and not reserved)
    if may_wake and wake_next(KEYS[i], queue, ARGV[5]) == 1 then woken = 2 end
  end
end
return (released == n and 1 or 0) + woken

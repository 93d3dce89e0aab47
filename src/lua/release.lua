-- Releases several resources, or one resource that has a queue or a minimum hold time: deletes each resource that still
-- holds the owner.
--
-- With LockOptions::min_hold, a resource stays unavailable for a minimum time after it was acquired. If a part of this
-- time remains, the script replaces the owner by a value that belongs to nobody, for the remaining time. It would not
-- be enough to shorten the expiry of the owner's value. An extension that arrives late would then find the owner and
-- restore the whole ttl. A release with a remaining minimum hold time gets no queues, because there is nothing to wake
-- a waiter for.
--
-- A queue has the *tickets* of the clients that wait for a resource. With queues, the script wakes the next waiter of
-- each resource (see wake_next() in prelude.lua). It does so even if the resource does not hold the owner, because the
-- waiter may get a majority on the other nodes. If the resource does not hold the owner, there are two exceptions:
--
-- 1. No waiter is woken if this release is repeated, because the earlier release may have woken a waiter.
-- 2. No waiter is woken if the resource is reserved for a waiter that was woken already.
--
-- A waiter that leaves the queue without an attempt sends a release with its ticket. The ticket is also the owner, so
-- that a reservation for this waiter is deleted. The release has the mark of a repeated one. If the script finds the
-- ticket in the queue, it removes the ticket. The waiter was not woken then, so nobody else is woken. If the ticket is
-- missing, the waiter was probably woken, and must pass the wake-up on. Then the script wakes the next waiter, unless
-- exception 2 applies.
--
-- An error in a queue does not prevent the deletion.
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

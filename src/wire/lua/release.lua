-- Releases several resources, or one resource with a queue or a minimum hold time: deletes each resource whose value is
-- the owner.
--
--     KEYS
--     the resources
--     a queue for each of the resources, unless ARGV[5] is empty; none if ARGV[3] is not
--
--     ARGV
--     1   the owner: the random value of one acquisition
--     2   the number of resources
--     3   the remaining minimum hold time, or empty
--     4   the ticket of a client that leaves the queue, or empty
--     5   the ttl of a reservation, or empty
--     6   '1', or empty if this release is sent again
--
--     returns   | meaning
--     ----------+------------------------------------------------------------------------------------------------
--     1         | The owner was the value of all resources.
--     0         | At least one resource had no value, or another one.
--     2 or 3    | the same as 0 or 1; and a client was woken
--     an error  | A resource is no text, or its owner could not be replaced (see below). The others are released.
--
-- A *minimum hold time* (LockOptions::min_hold) is a time after the acquisition for which the resource must stay
-- unavailable. If some of this time remains, the script does not delete the resource. It replaces the owner by a value
-- that belongs to nobody, and that expires at the end of this time. If the owner stayed there with a shorter ttl, an
-- extension that arrives late would restore the whole ttl.
--
-- SET needs memory, and PEXPIRE does not. A server that has reached maxmemory permits SET only to a script that has
-- written before. Therefore PEXPIRE comes first. Then the key also ends in time if SET fails.
--
-- *Queues* have the *tickets* of the clients that wait for a resource (prelude.lua). The release can wake the next
-- client in each queue. An error there does not prevent the deletion. The first row that applies decides:
--
--     the value of the resource is the owner            | wakes the next client
--     the resource is reserved for a client             | wakes nobody: this client was woken
--     this release is sent again (ARGV[6] is empty)     | wakes nobody: an earlier release may have done so
--     otherwise                                         | wakes the next client: this node may have lost the key, but
--                                                       | the other nodes become free
--
-- A client that leaves the queue without an attempt sends a release, too. ARGV[1] and ARGV[4] are then its ticket, and
-- ARGV[6] is empty. In place of the table above, this one decides:
--
--     the resource is reserved for this client          | wakes the next client
--     the resource is reserved for another client       | wakes nobody
--     the ticket was in the queue, and is removed now   | wakes nobody
--     the ticket is not in the queue                    | wakes the next client: this one was probably woken, and
--                                                       | passes the wake-up on
local n = tonumber(ARGV[2])
local released, woken, failure = 0, 0, nil
for i = 1, n do
  local held = text_in(KEYS[i])
  if held == nil then failure = failure or {err = 'WRONGTYPE ' .. KEYS[i] .. ' holds no lock'} end
  local ours = held == ARGV[1]
  if ours and ARGV[3] ~= '' then
    redis.pcall('pexpire', KEYS[i], ARGV[3])
    local set = redis.pcall('set', KEYS[i], 'redlock:min-hold', 'px', ARGV[3])
    if set.err then failure = set end
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
return failure or (released == n and 1 or 0) + woken

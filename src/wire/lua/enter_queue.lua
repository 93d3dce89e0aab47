-- Puts the *ticket* of a waiting client into the queue of a resource (prelude.lua), or keeps it there. Reports whether
-- the resource is held or reserved, and how many clients are in front. Removes the tickets of clients that have died.
--
-- The resource can be free although clients wait, for example if its holder has died. Then the script reserves it for
-- the first client in the queue, if ARGV[5] permits it.
--
-- KEYS: the resource, its queue. ARGV:
--
--     1   the ticket
--     2   the ttl of a reservation
--     3   how long the client has waited, in microseconds
--     4   the expiry of the queue. A client that has not called for so long is removed.
--     5   '1' if this call may reserve a free resource; '0' if the client only keeps its place, because it pauses
--         after a collision with another (failed_when_reserved() in src/flow/waiter_timing.hpp)
--     6   an earlier ticket of this client, which the new one replaces, or empty. A reservation for it is deleted.
--
-- Returns the status RESERVED if the resource is reserved for this client. Returns the status UNSUBSCRIBED, and keeps
-- no ticket, if nobody is subscribed to the channel of the ticket, because nobody could wake this client. Otherwise
-- returns the status WAITING with:
--
-- - the remaining time of the key in milliseconds, as PTTL returns it: -2 without a key, -1 without an expiry
-- - the number of clients in front
-- - what the key is: 'nothing', 'reservation', or 'holder' for every other value
local held = redis.call('get', KEYS[1])
if held == ARGV[1] then return {ok = 'RESERVED'} end
local failure = check_queue(KEYS[2])
if failure then return failure end
-- If the Redis user may not use PEXPIRE, the script ends here, and leaves no queue without an expiry.
redis.call('pexpire', KEYS[2], ARGV[4])
local was_reserved = ARGV[6] ~= '' and held == ARGV[6]
if ARGV[6] ~= '' then redis.call('zrem', KEYS[2], ARGV[6]) end
if was_reserved then
  redis.call('del', KEYS[1])
  held = false
end
-- If the Redis user may not use PUBSUB NUMSUB, the reply is an error, which has no second element.
if redis.pcall('pubsub', 'numsub', string.match(ARGV[1], '^[^|]*'))[2] == 0 then
  redis.pcall('zrem', KEYS[2], ARGV[1])
  if was_reserved then wake_next(KEYS[1], KEYS[2], ARGV[2]) end
  return {ok = 'UNSUBSCRIBED'}
end
local time = redis.call('time')
remove_silent_waiters(KEYS[2], ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[4])
redis.call('zadd', KEYS[2], 'nx', string.format('%.0f', time[1] * 1000000 + time[2] - ARGV[3]), ARGV[1])
redis.call('pexpire', KEYS[2], ARGV[4])
-- The microseconds of the clock, time[2], serve as a random number.
remove_waiters_without_listener(KEYS[2], ARGV[1], time[2])
if not held and ARGV[5] == '1' then
  local woken = wake_next(KEYS[1], KEYS[2], ARGV[2])
  if type(woken) ~= 'number' then return woken end
  held = redis.call('get', KEYS[1])
  if held == ARGV[1] then return {ok = 'RESERVED'} end
end
-- The ticket has no rank if wake_next() has taken it out of the queue, but could not set the reservation, for example
-- because the server is out of memory. No client counts as being in front of it then.
local what = not held and 'nothing' or is_ticket(held) and 'reservation' or 'holder'
return {
  ok = string.format(
    'WAITING %.0f %.0f %s', redis.call('pttl', KEYS[1]), redis.call('zrank', KEYS[2], ARGV[1]) or 0, what
  )
}

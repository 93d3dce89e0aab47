-- Extends one resource, as the Redlock specification does, if the key still holds the owner, which is the random value
-- of one acquisition. Never shortens the remaining time, because an extension that arrives late must not undo a later
-- one with a longer ttl.
-- KEYS: the resource. ARGV: owner, ttl (in milliseconds). Returns 1 if the key still holds the owner, otherwise 0.
if redis.call('get', KEYS[1]) == ARGV[1] then
  if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end
  return 1
else
  return 0
end

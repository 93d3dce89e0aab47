-- Releases one resource, as the Redlock specification does: deletes the key only if it still holds the owner, which is
-- a random value, new for each attempt to acquire.
-- KEYS: the resource. ARGV: owner. Returns 1 if the key was deleted, otherwise 0.
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
else
  return 0
end

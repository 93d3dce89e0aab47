-- Releases one resource, as the Redlock specification does: deletes the key if it still holds the owner, which is the
-- random value of one acquisition.
-- KEYS: the resource. ARGV: owner. Returns 1 if the key was deleted, otherwise 0.
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
else
  return 0
end

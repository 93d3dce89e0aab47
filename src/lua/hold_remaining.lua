-- Releases resources before their minimum hold time is over: replaces the owner by a value that belongs to nobody, for
-- the remaining time. It would not be enough to shorten the expiry of the owner's value. An extension that arrives late
-- would then find the owner and restore the whole ttl.
-- KEYS: the resources. ARGV: owner, remaining time. Returns 1 if all resources held the owner, otherwise 0.
local kept = 0
for i = 1, #KEYS do
  if redis.call('get', KEYS[i]) == ARGV[1] then
    redis.call('set', KEYS[i], 'redlock:rest', 'px', ARGV[2])
    kept = kept + 1
  end
end
if kept == #KEYS then return 1 else return 0 end

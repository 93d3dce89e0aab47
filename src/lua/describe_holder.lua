-- Writes the description of the holder beside each resource that holds the owner, for as long as the resource lives, and
-- deletes the owner's description beside the others. A key that is not a description, an owner with a blank behind it, is left
-- alone: it may be the lock of a resource of this name.
-- KEYS: the resources, the keys of their descriptions. ARGV: owner, description. Returns 1.
local n = #KEYS / 2
for i = 1, n do
  local key = KEYS[n + i]
  local value = redis.pcall('get', key)
  local owner = type(value) == 'string' and string.sub(value, 41, 41) == ' ' and string.sub(value, 1, 40)
  if redis.call('get', KEYS[i]) == ARGV[1] then
    local left = redis.call('pttl', KEYS[i])
    local ours = not value or owner and is_owner(owner)
    if left > 0 and ours then redis.call('set', key, ARGV[1] .. ' ' .. ARGV[2], 'px', left) end
  elseif owner == ARGV[1] then
    redis.call('del', key)
  end
end
return 1

-- Writes the description of the holder beside each resource that holds the owner, for as long as the resource lives, and
-- deletes the owner's description beside the others.
-- KEYS: the resources, the keys of their descriptions. ARGV: owner, description. Returns 1.
local n = #KEYS / 2
for i = 1, n do
  local description = KEYS[n + i]
  if redis.call('get', KEYS[i]) == ARGV[1] then
    local left = redis.call('pttl', KEYS[i])
    if left > 0 then redis.call('set', description, ARGV[1] .. ' ' .. ARGV[2], 'px', left) end
  else
    local held = redis.pcall('get', description)
    if type(held) == 'string' and string.sub(held, 1, #ARGV[1]) == ARGV[1] then redis.call('del', description) end
  end
end
return 1

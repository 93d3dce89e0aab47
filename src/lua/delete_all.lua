-- Releases several resources: deletes each that still holds the owner.
-- KEYS: the resources. ARGV: owner. Returns 1 if all of them were deleted, otherwise 0.
local deleted = 0
for i = 1, #KEYS do
  if redis.call('get', KEYS[i]) == ARGV[1] then deleted = deleted + redis.call('del', KEYS[i]) end
end
if deleted == #KEYS then return 1 else return 0 end

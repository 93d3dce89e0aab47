-- Reports which of several resources exist.
-- KEYS: the resources. Returns a text with one digit for each resource: 1 if it exists, otherwise 0.
local found = ''
for i = 1, #KEYS do found = found .. redis.call('exists', KEYS[i]) end
return found

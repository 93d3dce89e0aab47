-- Reports which of several resources exist. KEYS: the resources. Returns a text with a digit for each.
local found = ''
for i = 1, #KEYS do found = found .. redis.call('exists', KEYS[i]) end
return found

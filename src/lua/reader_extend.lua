-- Extends one reader. Does not create a missing key again, because an exclusive lock may have held the resource
-- meanwhile.
-- KEYS: the resource, its readers, the marker if there is a quarantine.
-- ARGV: owner, ttl, number of resources (always 1), quarantine.
-- Returns 1 if this reader still holds the resource, otherwise 0.
local readers, now, failure = take_readers()
local no_vote = failure or check_quarantine()
if no_vote then return no_vote end
remove_ended_readers(readers, now)
local ends = end_of_reader(readers)
if not ends then return 0 end
if tonumber(ends) < now + ARGV[2] then
  redis.call('zadd', readers, string.format('%.0f', now + ARGV[2]), ARGV[1])
end
follow_last_reader(readers)
return 1

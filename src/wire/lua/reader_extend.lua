-- Extends one reader (see the part on readers in prelude.lua). Does not create a missing key again, because an
-- exclusive lock may have held the resource meanwhile.
-- KEYS: the resource, its readers, [the *marker*, in which the node stores since when it has had its data].
-- ARGV: owner, number of resources (always 1), ttl, [*quarantine*: the time for which a node does not vote after it
-- may have lost its data, see quarantine.lua]. If the quarantine is empty, the marker is missing.
-- Returns 1 if this reader still holds the resource, otherwise 0. If the node has no vote, returns a status during the
-- quarantine, and otherwise an error.
local readers, now, failure = check_readers()
if failure then return failure end
local _, no_vote = check_vote(false)
if no_vote then return no_vote end
remove_ended_readers(readers, now)
local ends = end_of_reader(readers)
if not ends then return 0 end
if tonumber(ends) < now + ARGV[3] then
  redis.call('zadd', readers, string.format('%.0f', now + ARGV[3]), ARGV[1])
end
follow_last_reader(readers)
return 1

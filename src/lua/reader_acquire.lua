-- Acquires a resource for a reader. Other readers may hold the resource at the same time.
-- KEYS: the resource, its readers, the marker if there is a quarantine.
-- ARGV: owner, ttl, number of resources (always 1), quarantine.
-- Returns 1, or 0 if the resource is held and does not belong to readers.
local readers, now, failure = take_readers()
local no_vote = failure or check_quarantine()
if no_vote then return no_vote end
remove_ended_readers(readers, now)
if held_by_writer(readers) then return 0 end
enter_readers(readers, now)
return 1

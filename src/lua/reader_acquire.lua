-- Acquires a resource for a reader (LockOptions::shared). Other readers may hold the resource at the same time. While
-- there are readers, the value of the resource is the *shared marker* and no owner. The owners of the readers are in a
-- sorted set beside the resource (see the part on readers in prelude.lua). If there is a *counter*, the node counts in
-- it the holders of the resource, both readers and exclusive ones. The largest count of all nodes becomes the fencing
-- token. This script is the first round of fencing.
-- KEYS: the resource, its readers, [its counter], [the marker].
-- ARGV: owner (a random value, new for each attempt to acquire), number of resources (always 1), ttl, [expiry of the
-- counter], [quarantine]. The quarantine is the time for which a node declines to vote after it may have lost its data
-- (see check_vote() in quarantine.lua). The marker is the key in which the node stores since when it has had its data.
-- An argument in brackets can be empty. Then its key is missing.
-- Returns 0 if the resource has any value but the shared marker; otherwise the count, or 1 without a counter. If the
-- node has no vote, returns a status during the quarantine, and otherwise an error.
local readers, now, failure = check_readers()
if failure then return failure end
local expiry, data = ARGV[4], nil
data, failure = check_vote(expiry ~= '')
if failure then return failure end
remove_ended_readers(readers, now)
if held_by_writer(readers) then return 0 end
local count = 1
if expiry ~= '' then
  count, failure = count_holder(data, 1, 3, expiry)
  if failure then return failure end
end
enter_readers(readers, now)
return count

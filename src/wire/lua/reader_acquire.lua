-- Acquires a resource for a *reader* (LockOptions::shared), which can hold it together with other readers; prelude.lua
-- explains readers. With a *counter*, the node counts the holders of the resource for the fencing token, as in
-- acquire.lua.
-- KEYS: the resource, its readers, [its counter], [the *marker*, in which the node stores since when it has had its
-- data].
-- ARGV: owner (a random value, new for each attempt), number of resources (always 1), ttl, [expiry of the counter],
-- [*quarantine*: the time for which a node does not vote after it may have lost its data, see quarantine.lua]. If
-- the expiry or the quarantine is empty, the counter or the marker is missing.
-- Returns 0 if another lock than a reader holds the resource; otherwise the count, or 1 without a counter. If the node
-- has no vote, returns a status during the quarantine, and otherwise an error.
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

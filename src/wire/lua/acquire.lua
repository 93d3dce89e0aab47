-- Acquires several resources, or one resource if SET NX PX is not enough. An acquisition can use:
--
-- - A *quarantine*: the time for which a node does not vote after it may have lost its data (check_vote() in
--   quarantine.lua). The *marker* is a key with the instant since which the node has had its data.
-- - A *ticket*: the client has waited in the queue of its only resource. The script first takes the ticket out of the
--   queue, and deletes a reservation for it (prelude.lua). If the attempt fails, the client enters the queue again
--   at its old place, because the order depends on how long it has waited.
-- - *Counters*: the node counts the holders of each resource. The largest count of all nodes becomes the fencing token.
--   After the acquisition, raise_counts.lua raises the smaller counters to this token.
--
-- KEYS: the resources; the queue, unless ARGV[4] is empty; the counters of the resources, unless ARGV[5] is empty; the
-- marker, unless ARGV[6] is empty. ARGV:
--
--     1   the owner: random, and new for each attempt
--     2   the number of resources
--     3   the ttl
--     4   the ticket, or empty
--     5   the expiry of the counters, or empty
--     6   the quarantine, or empty
--
-- Returns 0 if a resource was not free; otherwise the largest count, or 1 without counters. If check_vote() finds that
-- the node must not vote, returns its reply: a status (quarantine) or an error.
local n, ticket, expiry = tonumber(ARGV[2]), ARGV[4], ARGV[5]
-- The index of the first counter, or false.
local counters = expiry ~= '' and (ticket == '' and n + 1 or n + 2)
if ticket ~= '' then leave_queue(KEYS[n + 1], ticket) end
-- check_vote() reads the quarantine, which is the last of ARGV, and the marker, which is the last of KEYS. If there are
-- counters or a quarantine, `data` is the text that identifies the present data of the server. Valid counters begin
-- with this text.
local data, failure = check_vote(counters)
if failure then return failure end
for i = 1, n do
  if redis.call('exists', KEYS[i]) == 1 then return 0 end
end
local count = 1
if counters then
  count, failure = count_holder(data, n, counters, expiry)
  if failure then return failure end
end
for i = 1, n do redis.call('set', KEYS[i], ARGV[1], 'px', ARGV[3]) end
return count

-- Acquires several resources: sets the key of each to the owner if all of them are free. Also acquires one resource if
-- SET NX PX is not enough, because the acquisition uses a ticket, counters or a quarantine (prelude.lua has the words):
--
--     what         | what the script does with it
--     -------------+--------------------------------------------------------------------------------------------------
--     a ticket     | The client has waited in the queue of its only resource. The script first deletes the reservation
--                  | for the ticket, and the ticket, if it is still in the queue. If the attempt fails, the client
--                  | enters the queue again at its old place, because the order depends on how long it has waited.
--     counters     | The script counts the new holder of each resource. The largest count of all nodes becomes the
--                  | fencing token. If no majority has it, raise_counts.lua raises the smaller counters to it.
--     a quarantine | If the node may have lost its data, it has no vote for this time (check_vote()).
--
--     KEYS
--     the resources
--     the queue of the resource, if there is a ticket
--     a counter for each of the resources, if there are counters
--     the marker of the node, if there is a quarantine
--
--     ARGV
--     1   the owner: random, and new for each attempt
--     2   the number of resources
--     3   the ttl
--     4   the ticket, or empty
--     5   the expiry of the counters, or empty
--     6   the quarantine, or empty
--
--     returns           | meaning
--     ------------------+-----------------------------------------------------------------------------------------
--     0                 | A resource was not free.
--     the largest count | All resources are acquired. Without counters, this is 1.
--     a status          | The node has no vote because of the quarantine.
--     an error          | check_vote() has refused the vote, or a counter holds something else.
local n, ticket, expiry = tonumber(ARGV[2]), ARGV[4], ARGV[5]
-- The index of the first counter, or false.
local counters = expiry ~= '' and (ticket == '' and n + 1 or n + 2)
if ticket ~= '' then leave_queue(KEYS[n + 1], ticket) end
-- check_vote() takes the quarantine and the marker from the ends of ARGV and KEYS. With counters or a quarantine, it
-- returns the text with which valid counters begin (identity_of_data()).
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

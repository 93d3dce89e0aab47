-- The functions of the prelude that decide whether a node may vote. They are the part of the quarantine
-- (NodesOptions::quarantine) that a server carries out. See also prelude.lua, whose functions they call.
--
-- The quarantine and the instant in the marker are in microseconds.

-- Returns nil if the node may vote, otherwise the reply with which it declines. A node may vote if it is known to have
-- had its data for the whole quarantine.
--
-- The last of KEYS is the marker. It holds the instant since which the server has had its data. The marker is lost
-- together with the data, and the first command after that writes it again. If the key holds anything but a marker, the
-- reply is an error. If the server's clock was set back, the node has to wait longer.
local function check_age(data, quarantine)
  local marker, time = KEYS[#KEYS], redis.call('time')
  local now = time[1] * 1000000 + time[2]
  local value = redis.call('get', marker)
  if value and not number_of_any_data(value) then return {err = 'WRONGTYPE ' .. marker .. ' holds no marker'} end
  local since = value and number_in(data, value)
  local expiry = string.format('%.0f', math.max(2419200000, quarantine / 500))
  if not since then
    since = now
    redis.call('set', marker, data .. string.format('%.0f', now), 'px', expiry)
  end
  if since + quarantine > now then
    return {ok = string.format('QUARANTINED for another %.0f ms', (since + quarantine - now) / 1000)}
  end
  if redis.call('pttl', marker) < expiry / 2 then redis.call('pexpire', marker, expiry) end
end

-- Returns the prefix of the counters' values, and nil or the reply with which the node declines to vote. Returns nothing
-- if the vote depends neither on counters nor on a quarantine. The quarantine is the last of ARGV, and empty if the node
-- has none.
local function check_vote(counting)
  local quarantine = ARGV[#ARGV]
  if not counting and quarantine == '' then return end
  local data, failure = identity_of_data()
  if not failure and quarantine ~= '' then failure = check_age(data, tonumber(quarantine)) end
  return data, failure
end

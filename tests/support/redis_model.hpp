// A Redis server in memory, without sockets and without a clock of its own: a command and the time in, the
// reply out. What it implements it does as Redis 7 does, which redis_model_live_test.cpp compares with a real
// server. Scripts are run by Lua itself.
//
//     RedisModel redis{"run-1"};
//     redis.execute({"SET", "orders:42", "me", "NX", "PX", "10000"}, now);
//     const auto snapshot = redis.keys();
//     redis.restart("run-2", snapshot);
//
// Beside GET, SET, DEL, EXISTS, TYPE, PEXPIRE, PEXPIREAT, PTTL, RPUSH (for values of another type), ZADD,
// ZCARD, ZCOUNT, ZPOPMIN, ZRANGE, ZRANK, ZREM, ZREMRANGEBYSCORE, ZSCORE, FLUSHALL, EVAL, EVALSHA, SCRIPT
// LOAD, TIME and PUBLISH it answers what clients ask at first: PING, AUTH, SELECT, INFO. It has one database,
// which every SELECT selects, and no users: a connection has no state. So subscriptions belong to those that
// have connections; they hear of messages through on_publish().
#pragma once

#include "support/redis_reply.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::support {

class RedisModel {
public:
    using Words = std::span<const std::string_view>;
    /// Of the server's wall clock, since 1970.
    using Time = std::chrono::microseconds;

    struct Value {
        static constexpr std::int64_t never = -1;

        std::string text{};        ///< of a string
        std::size_t elements = 0;  ///< of a list; others have none
        std::map<std::string, double, std::less<>>
            scores{};                 ///< of a sorted set, by member; others have none
        std::int64_t expiry = never;  ///< its last millisecond

        bool is_string() const noexcept { return elements == 0 && scores.empty(); }
        /// The place of each member.
        std::vector<std::pair<double, std::string_view>> in_order() const;
    };
    /// Those that have expired may still be among them.
    using Keys = std::map<std::string, Value, std::less<>>;

    /// Both are filled up to the 40 characters that a server's have.
    explicit RedisModel(const std::string& run_id, const std::string& master_replid = "replid")
        : run_id_(filled_up(run_id)), master_replid_(filled_up(master_replid)) {}

    RedisReply execute(Words words, Time now);
    RedisReply execute(const std::vector<std::string>& words, Time now);

    /// Called with the channel and the message of each PUBLISH; the answer: how many have heard it, or
    /// nothing where the user may not publish there.
    using Publish = std::function<std::optional<std::size_t>(std::string_view, std::string_view)>;
    void on_publish(Publish publish) { publish_ = std::move(publish); }

    /// Called with each channel of PUBSUB NUMSUB. Without it the user may not use that command.
    using CountListeners = std::function<std::size_t(std::string_view)>;
    void on_numsub(CountListeners count_listeners) { count_listeners_ = std::move(count_listeners); }

    /// From now on, scripts may not call this command, because the user may not. An empty name permits all.
    void forbid_in_scripts(std::string name) { forbidden_ = std::move(name); }

    /// Comes up again with these keys, and knows no script.
    void restart(const std::string& run_id, Keys keys);
    /// Is a replica from now on, though one that takes writes.
    void demote() { replica_ = true; }
    /// Has reached maxmemory, or has not: refuses the commands that need memory, as Redis does without an
    /// eviction policy. In a script it refuses them only before the first write.
    void run_out_of_memory(bool out_of_memory = true) { out_of_memory_ = out_of_memory; }
    /// Is the master again, with what it has had of its master's keys.
    void promote(Keys keys);

    const std::string& run_id() const noexcept { return run_id_; }
    /// Whose data these are: what the scripts write in front of what they remember.
    std::string data() const { return run_id_ + ":" + master_replid_ + ":"; }
    /// To be copied (a snapshot), replaced, or robbed of a key (an eviction).
    Keys& keys() noexcept { return keys_; }
    const Keys& keys() const noexcept { return keys_; }

    /// What is there under `key`; null if nothing.
    const Value* find(std::string_view key, Time now) const;

private:
    struct Command;
    static const Command* command_of(std::string_view name);

    RedisReply call_from_script(Words words);
    bool lacks_memory_for(const Command& command) const noexcept;
    template <class Find>
    RedisReply run_script(Words words, Find find_script);
    Value* live(std::string_view key);
    RedisReply expire_at(std::string_view key, std::int64_t instant);
    bool remove_member(std::string_view key, std::string_view member);
    std::int64_t now_ms() const noexcept;

    RedisReply auth(Words words);
    RedisReply del(Words words);
    RedisReply eval(Words words);
    RedisReply evalsha(Words words);
    RedisReply exists(Words words);
    RedisReply flushall(Words words);
    RedisReply get(Words words);
    RedisReply info(Words words);
    RedisReply pexpire(Words words);
    RedisReply pexpireat(Words words);
    RedisReply ping(Words words);
    RedisReply pttl(Words words);
    RedisReply pubsub(Words words);
    RedisReply publish(Words words);
    RedisReply rpush(Words words);
    RedisReply script(Words words);
    RedisReply select(Words words);
    RedisReply set(Words words);
    RedisReply time(Words words);
    RedisReply type(Words words);
    RedisReply zadd(Words words);
    RedisReply zcard(Words words);
    RedisReply zcount(Words words);
    RedisReply zpopmin(Words words);
    RedisReply zrange(Words words);
    RedisReply zrank(Words words);
    RedisReply zrem(Words words);
    RedisReply zremrangebyscore(Words words);
    RedisReply zscore(Words words);

    /// Zeros stand in front, so that different names stay different.
    static std::string filled_up(const std::string& id) {
        constexpr std::size_t length = 40;
        const auto filled = std::string(length, '0') + id;
        return id.size() < length ? filled.substr(filled.size() - length) : id.substr(id.size() - length);
    }

    std::string run_id_;
    std::string master_replid_;
    int promotions_ = 0;
    bool replica_ = false;
    bool out_of_memory_ = false;
    bool script_has_written_ = false;
    Publish publish_{};
    std::string forbidden_{};
    CountListeners count_listeners_{};
    Keys keys_{};
    std::map<std::string, std::string, std::less<>> scripts_{};  // texts by SHA1
    Time now_{};                                                 // of the command that is executed
};

}  // namespace redlock::support

// A Redis server over a VirtualNetwork. It executes commands as Redis does (RedisModel), and replies as it is
// told to. It records what it has executed and replied. From that a target can tell whether a lock was
// granted, and whether a client was sent a wrong reply.
#pragma once

#include "virtual_network.hpp"

#include <redlock/clock.hpp>

#include "support/command_reader.hpp"
#include "support/redis_model.hpp"
#include "support/reply_reader.hpp"

#include <cstddef>
#include <deque>
#include <limits>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "wire/scripts.hpp"

namespace redlock::fuzz {

using support::RedisReply;
using support::ReplyReader;

using Words = std::vector<std::string>;

/// What the server does with a command.
enum class Behavior : char {
    normal = 'p',
    slow = 'b',         ///< replies after half a node_timeout
    late = 'l',         ///< executes it at once, replies after three node_timeouts
    delayed = 'o',      ///< executes it after three node_timeouts, then replies
    silent = 's',       ///< executes it, never replies
    trickling = 't',    ///< replies byte by byte, an eighth of a node_timeout each
    garbage = 'n',      ///< executes it, replies with the bytes that were set
    twice = 'e',        ///< replies twice
    closing = 'c',      ///< executes it and closes the connection
    truncating = 'x',   ///< sends half of the reply and closes the connection
    dropping = 'r',     ///< closes the connection and executes nothing
    wrong_type = 'w',   ///< executes nothing, replies WRONGTYPE
    loading = 'y',      ///< executes nothing, replies LOADING
    echoing = 'g',      ///< executes nothing, replies with an error that contains all it was sent
    text = 'i',         ///< executes nothing, replies with a string instead of a status
    forgetful = 'u',    ///< forgets its scripts before each command
    away = 'a',         ///< closes every connection
    refusing = 'f',     ///< refuses new connections; the others are served
    unreachable = 'v',  ///< nobody can connect, and nothing arrives, until the behavior changes
    frozen = 'z',       ///< does nothing until the behavior changes, then everything that has come in
};
inline constexpr std::string_view behaviors = "pblostnecxrwygiuafvz";

class FakeRedisServer final : public Server {
public:
    FakeRedisServer(std::size_t number, Clock::duration node_timeout)
        : number_(number), node_timeout_(node_timeout), model_(run_id()) {}

    void behave(Behavior behavior);
    void set_garbage(std::string_view bytes) { garbage_ = bytes; }
    /// Closes every connection, and starts again with its keys.
    void restart();

    void accept(std::shared_ptr<Stream> stream) override;
    void act(Clock::time_point now) override;
    Clock::time_point next() const override;

    /// Returns true if it has sent a client a grant to `owner` in the place of the reply to an acquisition.
    bool has_granted(std::string_view owner) const { return granted_.contains(owner); }
    /// Returns true if it has reported a grant or a count that was wrong.
    bool has_misreported() const { return misreported_; }
    /// Returns true if it executes every command sooner or later, in the order of each connection.
    bool executes_all() const { return executes_all_; }

    /// Returns true if all of the resources have `owner`.
    bool holds(const Words& resources, std::string_view owner, Clock::time_point now) const;
    /// Returns true if no resource is locked.
    bool empty(Clock::time_point now) const;

private:
    /// The meaning of a command of a lock.
    struct CommandInfo {
        const detail::Script* script = nullptr;  ///< null: no script
        bool acquires = false;
        bool matters = false;  ///< the lock relies on a grant
        std::string owner{};
    };
    struct Task {
        Clock::time_point due;
        Words words;
        Behavior behavior;
    };
    struct Sending {
        Clock::time_point due;
        std::string bytes;
        bool last = false;  // the connection is closed after this
    };
    /// A command, executed or not, and its reply.
    struct Done {
        CommandInfo info;
        RedisReply reply;
    };
    struct Session {
        std::shared_ptr<Stream> stream;
        support::CommandReader reader{std::numeric_limits<std::size_t>::max()};
        std::deque<Task> tasks{};
        std::deque<Sending> sendings{};
        ReplyReader sent{};
        bool readable = true;              // replies can still be parsed
        std::deque<RedisReply> replies{};  // not yet assigned to a command
        std::deque<Done> done{};           // not yet assigned to a reply
        bool over = false;
    };

    static CommandInfo info_of(const Words& words);
    static bool grants(const CommandInfo& info, const RedisReply& reply);
    static support::RedisModel::Time wall(Clock::time_point now);

    std::string run_id() const {
        return "server" + std::to_string(number_) + "." + std::to_string(restarts_);
    }
    bool hangs() const { return behavior_ == Behavior::frozen || behavior_ == Behavior::unreachable; }
    void admit(Session& session) const;
    void receive(Session& session, Clock::time_point now);
    void work(Session& session, Clock::time_point now);
    void execute(Session& session, const Task& task, Clock::time_point now);
    RedisReply reply_to(const Task& task, Clock::time_point now);
    void schedule(Session& session, const Task& task, const std::string& reply, Clock::time_point now);
    void send(Session& session, Clock::time_point now);
    void match(Session& session);
    void match(const RedisReply& reply, const Done& done);

    const std::size_t number_;
    const Clock::duration node_timeout_;
    int restarts_ = 0;
    support::RedisModel model_;
    Behavior behavior_ = Behavior::normal;
    std::string garbage_ = "HTTP/1.1 400 Bad Request\r\n\r\n";
    std::list<Session> sessions_{};
    std::set<std::string, std::less<>> granted_{};
    bool misreported_ = false;
    bool executes_all_ = true;
};

}  // namespace redlock::fuzz

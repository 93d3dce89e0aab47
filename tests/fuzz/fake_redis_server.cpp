#include "fake_redis_server.hpp"

#include "require.hpp"
#include "support/script_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace redlock::fuzz {

void FakeRedisServer::behave(Behavior behavior) {
    constexpr std::string_view executing = "pblostz";
    behavior_ = behavior;
    executes_all_ = executes_all_ && executing.find(static_cast<char>(behavior)) != executing.npos;
}

void FakeRedisServer::restart() {
    executes_all_ = false;
    for (const auto& session : sessions_) session.stream->finished = session.stream->closed_by_server = true;
    sessions_.clear();
    ++restarts_;
    model_.restart(run_id(), model_.keys());
}

// ---- Connections

void FakeRedisServer::accept(std::shared_ptr<Stream> stream) {
    auto& session = sessions_.emplace_back(Session{.stream = std::move(stream)});
    if (behavior_ != Behavior::unreachable) admit(session);
}

void FakeRedisServer::admit(Session& session) const {
    auto& stream = *session.stream;
    if (stream.connect_result) return;
    stream.connect_result = behavior_ == Behavior::refusing ? ECONNREFUSED : 0;
    session.over = *stream.connect_result != 0;
}

void FakeRedisServer::act(Clock::time_point now) {
    if (hangs()) return;
    for (auto& session : sessions_) {
        admit(session);
        session.over = session.over || behavior_ == Behavior::away;
        receive(session, now);
        work(session, now);
        send(session, now);
        if (session.over) session.stream->finished = session.stream->closed_by_server = true;
    }
    std::erase_if(sessions_, [](const Session& session) { return session.over; });
}

Clock::time_point FakeRedisServer::next() const {
    auto next = Clock::never();
    if (hangs()) return next;
    for (const auto& session : sessions_) {
        if (!session.tasks.empty()) next = std::min(next, session.tasks.front().due);
        if (!session.sendings.empty()) next = std::min(next, session.sendings.front().due);
    }
    return next;
}

// ---- Commands

/// Accepts commands. Those that a client sent before it closed the connection are executed, too.
void FakeRedisServer::receive(Session& session, Clock::time_point now) {
    auto& tasks = session.tasks;
    session.reader.take(std::exchange(session.stream->to_server, {}), [&](Words words) {
        auto due = behavior_ == Behavior::delayed ? now + 3 * node_timeout_ : now;
        if (!tasks.empty()) due = std::max(due, tasks.back().due);
        tasks.push_back({due, std::move(words), behavior_});
    });
    require(!session.reader.blind(), "commands are arrays of strings");
    if (session.stream->closed_by_client && tasks.empty()) session.over = true;
}

void FakeRedisServer::work(Session& session, Clock::time_point now) {
    while (!session.over && !session.tasks.empty() && session.tasks.front().due <= now) {
        const auto task = std::move(session.tasks.front());
        session.tasks.pop_front();
        execute(session, task, now);
    }
}

void FakeRedisServer::execute(Session& session, const Task& task, Clock::time_point now) {
    if (task.behavior == Behavior::dropping) {
        session.over = true;
        return;
    }
    if (task.behavior == Behavior::forgetful) model_.restart(run_id(), model_.keys());
    const auto reply = reply_to(task, now);
    session.done.push_back({info_of(task.words), reply});
    match(session);
    schedule(session, task, support::to_resp(reply), now);
}

RedisReply FakeRedisServer::reply_to(const Task& task, Clock::time_point now) {
    switch (task.behavior) {
        case Behavior::wrong_type:
            return RedisReply::of_error("WRONGTYPE Operation against a key holding the wrong kind of value");
        case Behavior::loading: return RedisReply::of_error("LOADING Redis is loading the dataset in memory");
        case Behavior::text: return RedisReply::of_bulk("OK");
        case Behavior::echoing: break;
        default:
            if (task.words.front() == "AUTH") return RedisReply::of_status("OK");
            return model_.execute(task.words, wall(now));
    }
    std::string echo = "ERR unknown command, with args beginning with:";
    for (const auto& word : task.words) echo += " '" + word + "'";
    return RedisReply::of_error(echo);
}

FakeRedisServer::CommandInfo FakeRedisServer::info_of(const Words& words) {
    if (words[0] == "SET") return {.acquires = true, .matters = true, .owner = words.at(2)};
    if (words.size() < 3 || !words[0].starts_with("EVAL")) return {};
    const auto* const script = support::script_of(words);
    require(script != nullptr, "a script of the library");
    const bool deletes =
        script == &detail::scripts::compare_and_delete || script == &detail::scripts::release;
    return {.script = script,
            .acquires = script == &detail::scripts::acquire,
            .matters = !deletes,
            .owner = std::string{support::argument(words, 1)}};
}

bool FakeRedisServer::grants(const CommandInfo& info, const RedisReply& reply) {
    if (!info.script) return reply == RedisReply::of_status("OK");
    if (reply.kind != RedisReply::Kind::integer) return false;
    return reply.integer == 1 || (info.script == &detail::scripts::acquire && reply.integer > 0);
}

// ---- Replies

void FakeRedisServer::schedule(Session& session, const Task& task, const std::string& reply,
                               Clock::time_point now) {
    auto due = now;
    if (!session.sendings.empty()) due = std::max(due, session.sendings.back().due);
    const auto later = [&](std::string_view bytes, bool last = false) {
        session.sendings.push_back({due, std::string{bytes}, last});
    };
    switch (task.behavior) {
        case Behavior::silent: return;
        case Behavior::garbage: return later(garbage_);
        case Behavior::twice: return later(reply + reply);
        case Behavior::closing: return later({}, true);
        case Behavior::truncating: return later(std::string_view{reply}.substr(0, reply.size() / 2), true);
        case Behavior::slow: due += node_timeout_ / 2; return later(reply);
        case Behavior::late: due += 3 * node_timeout_; return later(reply);
        case Behavior::trickling:
            for (const auto& byte : reply) {
                due += node_timeout_ / 8;
                later({&byte, 1});
            }
            return;
        default: return later(reply);
    }
}

void FakeRedisServer::send(Session& session, Clock::time_point now) {
    while (!session.over && !session.sendings.empty() && session.sendings.front().due <= now) {
        const auto sending = std::move(session.sendings.front());
        session.sendings.pop_front();
        if (!session.stream->closed_by_client) {
            session.stream->to_client += sending.bytes;
            session.sent.take(sending.bytes);
        }
        match(session);
        session.over = sending.last;
    }
}

/// Assigns the replies to the commands in their order, whatever they were meant for.
void FakeRedisServer::match(Session& session) {
    using Progress = ReplyReader::Progress;
    while (session.readable) {
        RedisReply reply;
        const auto progress = session.sent.next(reply);
        if (progress == Progress::incomplete) break;
        if (progress == Progress::reply)
            session.replies.push_back(reply);
        else
            session.readable = false;
        misreported_ = misreported_ || progress == Progress::ambiguous;
    }
    while (!session.replies.empty() && !session.done.empty()) {
        match(session.replies.front(), session.done.front());
        session.replies.pop_front();
        session.done.pop_front();
    }
}

void FakeRedisServer::match(const RedisReply& reply, const Done& done) {
    const bool granted = grants(done.info, reply);
    if (done.info.acquires && granted) granted_.insert(done.info.owner);
    misreported_ = misreported_ || (done.info.matters && granted && reply != done.reply);
}

// ---- Keys

/// Returns a wall clock somewhere in 2026.
support::RedisModel::Time FakeRedisServer::wall(Clock::time_point now) {
    using Time = support::RedisModel::Time;
    return std::chrono::duration_cast<Time>(now.time_since_epoch()) + Time{1'780'000'000'000'000};
}

bool FakeRedisServer::holds(const Words& resources, std::string_view owner, Clock::time_point now) const {
    return std::ranges::all_of(resources, [&](const std::string& resource) {
        const auto* const value = model_.find(resource, wall(now));
        return value && value->text == owner;
    });
}

/// Returns true if only counters are left.
bool FakeRedisServer::empty(Clock::time_point now) const {
    return std::ranges::none_of(model_.keys(), [&](const auto& it) {
        return !it.first.ends_with(":fence") && model_.find(it.first, wall(now));
    });
}

}  // namespace redlock::fuzz

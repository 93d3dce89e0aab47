#include "interleavings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

namespace redlock::test {
namespace {

std::string in_seconds(seconds span) {
    return std::to_string(span.count());
}

std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
}

std::string shown(const Words& words) {
    if (words[0] == "EVAL") return "compare-and-delete " + words[3] + " " + words[4];
    if (words[0] == "MULTI") return "MULTI, DEL " + words[2] + ", EXEC";
    std::string line;
    for (const auto& word : words) line += (line.empty() ? "" : " ") + word;
    return line;
}

/// One line of a schedule. It is formatted only for the schedule that is found.
struct Event {
    seconds time{0};
    char client = ' ';
    Words words{};  // empty: not shown
    std::optional<RedisReply> reply{};
    std::string outcome{};
};

std::string line_of(const Event& event) {
    if (event.words.empty()) return {};
    const auto time = in_seconds(event.time);
    auto line = std::string(3 - std::min<std::size_t>(time.size(), 3), ' ') + time + " s  " + event.client +
                "  " + padded(shown(event.words), 34);
    if (event.reply) line += padded(text_of(*event.reply), 6) + event.outcome;
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

/// Executes the next step of `client`.
Event take_step(const Pattern& pattern, State& state, Client& client, Node& node) {
    const auto& step = pattern[client.step - 1];
    if (!step.command) {
        step.conclude(client, {}, state.now + client.ahead);
        return {state.now, client.name, {"looks at its clock"}};
    }
    Event event{state.now, client.name, step.command(client)};
    event.reply = node.execute(event.words, state, client);
    const bool held = client.holding;
    step.conclude(client, *event.reply, state.now + client.ahead);
    if (!held && client.holds(state.now))
        event.outcome = "holds the lock until " + in_seconds(client.deadline) + " s" +
                        (client.ahead > seconds{0} ? " by its clock" : "");
    return event;
}

/// Begins the next attempt, if one is left.
void begin(Client& client, seconds now, int attempts) {
    if (client.step != Client::idle || client.attempts == attempts) return;
    ++client.attempts;
    client.deadline = now + client.ahead + Client::ttl;
    client.go_on();
}

/// Returns a text that is equal only for equal states.
std::string identity(const State& state) {
    std::string id;
    const auto add = [&](std::int64_t number) {
        const auto bytes = std::bit_cast<std::array<char, sizeof number>>(number);
        id.append(bytes.data(), bytes.size());
    };
    add(state.now.count() * 1000 + state.crashes);
    for (const auto& client : state.clients) {
        add(client.attempts * 1000 + static_cast<int>(client.step));
        add(client.deadline.count() * 2 + client.holding);
        id += client.watched + '/';
    }
    for (const auto& [key, value] : state.keys) {
        id += value.text + '/';
        add(value.expiry);
    }
    return id;
}

/// Calls `next` with each possible next state, and the event that leads to it.
template <class Next>
void for_each_successor(const Pattern& pattern, const State& state, const Bounds& bounds, Node& node,
                        Next next) {
    const auto after = [&](auto change) {
        auto changed = state;
        auto event = change(changed);
        next(std::move(changed), std::move(event));
    };
    for (std::size_t i = 0; i < state.clients.size(); ++i) {
        const auto& client = state.clients[i];
        if (client.step == Client::idle) {
            after([&](State& it) { return begin(it.clients[i], it.now, bounds.attempts), Event{}; });
            continue;
        }
        if (client.step <= pattern.size())
            after([&](State& it) { return take_step(pattern, it, it.clients[i], node); });
        if (client.holding && !client.holds(state.now))
            after([&](State& it) { return it.clients[i].stop(), Event{}; });
        if (state.crashes < bounds.crashes)
            after([&](State& it) {
                it.clients[i].stop();
                ++it.crashes;
                return Event{it.now, client.name, {"crashes, and starts anew"}};
            });
    }
    if (state.now + bounds.time_step <= bounds.end)
        after([&](State& it) { return it.now += bounds.time_step, Event{}; });
}

}  // namespace

// ---- The node

std::string Node::contents() const {
    const auto* const value = redis_.find(key, now_);
    return value ? value->text + " until " + std::to_string(value->expiry) : "nothing";
}

RedisReply Node::execute(const Words& words, State& state, Client& client) {
    redis_.keys() = std::move(state.keys);
    now_ = state.now;
    auto reply = answer(words, client);
    state.keys = std::move(redis_.keys());
    redis_.keys().clear();
    return reply;
}

RedisReply Node::answer(const Words& words, Client& client) {
    if (words[0] == "WATCH") {
        client.watched = contents();
        return RedisReply::of_status("OK");
    }
    if (words[0] == "UNWATCH") {
        client.watched.clear();
        return RedisReply::of_status("OK");
    }
    if (words[0] == "MULTI") {  // with the commands after it, in one write
        const bool untouched = std::exchange(client.watched, {}) == contents();
        return untouched ? ask({"DEL", key}) : RedisReply{};
    }
    return answer(words);
}

RedisReply Node::answer(const Words& words) {
    const auto set_if_absent = [&](const std::string& text) {
        return ask({"SET", key, text, "NX"}).kind == RedisReply::Kind::status;
    };
    if (words[0] == "SETNX") return RedisReply::of_integer(set_if_absent(words[2]) ? 1 : 0);
    if (words[0] == "SETBIT") return RedisReply::of_integer(set_if_absent("a bit") ? 0 : 1);
    if (words[0] == "GETBIT") return ask({"EXISTS", key});
    if (words[0] == "EXPIRE") return ask({"PEXPIRE", key, words[2] + "000"});
    if (words[0] != "GETSET") return ask(words);
    auto before = ask({"GET", key});
    ask({"SET", key, words[2]});
    return before;
}

// ---- Faults

std::string two_holders(const Pattern&, const State& state, Node&) {
    std::string holders;
    for (const auto& client : state.clients)
        if (client.holds(state.now)) holders += client.name;
    return holders.size() < 2 ? "" : "two holders";
}

std::string held_for_ever(const Pattern& pattern, const State& state, Node& node) {
    if (std::ranges::any_of(state.clients, [](const Client& it) { return it.step != Client::idle; }))
        return {};
    auto later = state;
    later.now += std::chrono::hours{1};
    Client alone{.name = 'C'};
    constexpr int attempts = 2;
    while (!alone.holding && (alone.step != Client::idle || alone.attempts < attempts)) {
        begin(alone, later.now, attempts);
        take_step(pattern, later, alone, node);
    }
    return alone.holding ? "" : "held for ever";
}

// ---- The searches

Found shortest_schedule(const Pattern& pattern, const Fault& fault, const Bounds& bounds) {
    struct Visited {
        State state;
        std::size_t from;
        Event event;
    };
    Node node;
    std::deque<Visited> visited;
    std::unordered_set<std::string> known;
    const auto visit = [&](State state, std::size_t from, Event event) {
        if (known.insert(identity(state)).second)
            visited.push_back({std::move(state), from, std::move(event)});
    };
    visit({.clients = {{.name = 'A'}, {.name = 'B', .ahead = bounds.ahead}}}, 0, {});
    for (std::size_t i = 0; i < visited.size(); ++i) {
        const auto& state = visited[i].state;
        if (const auto wrong = fault(pattern, state, node); !wrong.empty()) {
            auto schedule = line_of({.time = state.now, .words = {wrong}});
            for (auto at = i; at > 0; at = visited[at].from) schedule.insert(0, line_of(visited[at].event));
            return {schedule, visited.size()};
        }
        for_each_successor(pattern, state, bounds, node,
                           [&](State after, Event event) { visit(std::move(after), i, std::move(event)); });
    }
    return {{}, visited.size()};
}

namespace {

Release longest_release_from(const Pattern& pattern, const State& state, int touches, Node& node) {
    if (state.clients[0].step == Client::idle) return {};
    auto next = state;
    auto event = take_step(pattern, next, next.clients[0], node);
    auto longest = longest_release_from(pattern, next, touches, node);
    longest.schedule.insert(0, line_of(event));
    ++longest.round_trips;
    if (touches == 0) return longest;

    next = state;
    next.now += seconds{1};
    event = {next.now, next.clients[1].name, {"EXPIRE", Node::key, in_seconds(Client::ttl)}};
    event.reply = node.execute(event.words, next, next.clients[1]);
    auto touched = longest_release_from(pattern, next, touches - 1, node);
    touched.schedule.insert(0, line_of(event));
    return touched.round_trips > longest.round_trips ? touched : longest;
}

}  // namespace

Release longest_release(const Pattern& pattern, int touches) {
    Node node;
    State state{.clients = {{.name = 'A'}, {.name = 'B'}}};
    auto& holder = state.clients[0];
    begin(holder, state.now, 1);
    while (!holder.holding) take_step(pattern, state, holder, node);
    return longest_release_from(pattern, state, touches, node);
}

}  // namespace redlock::test

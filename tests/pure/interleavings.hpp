// Searches every order of the steps of two clients of a lock on one Redis node:
//
//     const auto found = shortest_schedule(pattern, two_holders);
//     EXPECT_EQ(found.schedule, "");             // one line for each event; empty: there is no such schedule
//
// A pattern is a list of steps. Each step is a command, and what the client concludes from the reply. The
// words of a command are fixed when the previous step ends, and the server executes the command at any later
// time. Meanwhile the client is paused, or the command is on its way, so that a crash loses it. A client
// reads its clock when an attempt begins. The next attempt begins after the last step, or when the lease has
// ended.
#pragma once

#include "support/redis_model.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace redlock::test {

using std::chrono::seconds;
using support::RedisModel;
using support::RedisReply;
using Words = std::vector<std::string>;

/// The limits of a search: the number of attempts of each client, the steps in which time advances, its end,
/// and the number of crashes. After a crash a client starts again and remembers nothing.
struct Bounds {
    int attempts = 2;
    seconds time_step{5};
    seconds end{20};
    int crashes = 1;
    seconds ahead{0};  ///< by which the clock of B is ahead of those of A and the server
};

struct Client {
    static constexpr seconds ttl{10};
    static constexpr std::size_t idle = 0;  // between two attempts

    char name;
    seconds ahead{0};
    int attempts = 0;
    std::size_t step = idle;  // 1: the first step of the pattern
    seconds deadline{0};      // of this attempt; like all times here, by the client's own clock
    bool holding = false;     // until the deadline
    std::string watched{};    // what WATCH has read

    /// Returns an owner that differs for each attempt (A5).
    std::string owner() const { return std::string{name} + "#" + std::to_string(attempts); }
    bool holds(seconds now) const { return holds_by(now + ahead); }
    bool holds_by(seconds its_clock) const { return holding && its_clock < deadline; }

    void go_to(std::size_t next) { step = next; }
    void go_on() { ++step; }
    void acquired() {
        holding = true;
        go_on();
    }
    void stop() {
        holding = false;
        deadline = seconds{0};
        watched.clear();
        step = idle;
    }
};

struct Step {
    std::function<Words(const Client&)> command;  // empty: the client decides without a command
    std::function<void(Client&, const RedisReply&, seconds now)> conclude;
};
using Pattern = std::vector<Step>;

struct State {
    seconds now{0};
    int crashes = 0;
    RedisModel::Keys keys{};
    std::vector<Client> clients{};
};

/// One node. Commands that RedisModel lacks are translated into those that it has. Each is still one step.
class Node {
public:
    static constexpr auto key = "lock";

    RedisReply execute(const Words& words, State& state, Client& client);

private:
    RedisReply answer(const Words& words, Client& client);
    RedisReply answer(const Words& words);
    RedisReply ask(const Words& words) { return redis_.execute(words, now_); }
    std::string contents() const;

    RedisModel redis_{"run"};
    seconds now_{0};
};

/// A schedule, and the number of different states that the search has seen.
struct Found {
    std::string schedule{};
    std::size_t states = 0;
};

/// Returns what is wrong with a state, or an empty text.
using Fault = std::function<std::string(const Pattern&, const State&, Node&)>;

/// S1. Two clients hold the lock.
std::string two_holders(const Pattern&, const State&, Node&);
/// S2. No client uses the lock any more, and a single client is refused even an hour later.
std::string held_for_ever(const Pattern&, const State&, Node&);

/// Searches breadth-first, so the first result is a shortest one.
Found shortest_schedule(const Pattern&, const Fault&, const Bounds& = {});

struct Release {
    int round_trips = 0;
    std::string schedule{};
};

/// Returns the largest number of round trips in which A releases the lock while B changes the key that often,
/// at any times.
Release longest_release(const Pattern&, int touches);

}  // namespace redlock::test

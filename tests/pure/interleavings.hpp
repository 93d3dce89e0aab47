// Two clients of a lock on one Redis node, and every order in which their steps can come:
//
//     const auto found = shortest_schedule(pattern, two_holders);
//     EXPECT_EQ(found.schedule, "");             // line by line; empty: there is none
//
// A pattern is a list of steps, each a command and what the client concludes from the reply. The words of a
// command are fixed when the step before it ends, and the server executes it at any later time: meanwhile the
// client is paused, or the command is on its way, which a crash makes it lose. A client looks at its clock
// when an attempt begins. After its last step, or when its lease is over, comes the next attempt.
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

/// What a search goes through: each client makes so many attempts, the time goes on in such steps up to the
/// end, and so many crashes happen, after which the client starts anew and remembers nothing.
struct Bounds {
    int attempts = 2;
    seconds time_step{5};
    seconds end{20};
    int crashes = 1;
    seconds ahead{0};  ///< of the clock of B, before that of A and of the server
};

struct Client {
    static constexpr seconds ttl{10};
    static constexpr std::size_t idle = 0;  // between two attempts

    char name;
    seconds ahead{0};
    int attempts = 0;
    std::size_t step = idle;  // 1: the first of the pattern
    seconds deadline{0};      // of this attempt, by its own clock as all times here
    bool holding = false;     // until the deadline
    std::string watched{};    // what WATCH has seen

    /// Another for each attempt (A5).
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
    std::function<Words(const Client&)> command;  // none: a decision of the client alone
    std::function<void(Client&, const RedisReply&, seconds now)> conclude;
};
using Pattern = std::vector<Step>;

struct State {
    seconds now{0};
    int crashes = 0;
    RedisModel::Keys keys{};
    std::vector<Client> clients{};
};

/// One node. Commands that RedisModel lacks are put in terms of those it has; each is one step all the same.
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

/// A schedule, and how many different states the search has seen.
struct Found {
    std::string schedule{};
    std::size_t states = 0;
};

/// What is wrong with a state; empty: nothing.
using Fault = std::function<std::string(const Pattern&, const State&, Node&)>;

/// S1.
std::string two_holders(const Pattern&, const State&, Node&);
/// S2. Nobody is busy with the lock any more, and even an hour later a client alone is refused.
std::string held_for_ever(const Pattern&, const State&, Node&);

/// By breadth: what comes first is as short as can be.
Found shortest_schedule(const Pattern&, const Fault&, const Bounds& = {});

struct Release {
    int round_trips = 0;
    std::string schedule{};
};

/// The most round trips in which A lets go of what it holds, while B touches the key so many times, whenever
/// that is.
Release longest_release(const Pattern&, int touches);

}  // namespace redlock::test

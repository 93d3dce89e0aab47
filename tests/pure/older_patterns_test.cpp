// Older lock patterns from the literature (S40-S46, S53). For each, a search finds a shortest schedule that
// breaks it, which docs/why-not.md must show. The same search, within the same bounds, finds none for the
// commands of the library.
#include "interleavings.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "wire/scripts.hpp"

namespace redlock::test {
namespace {

using Kind = RedisReply::Kind;

bool is_ok(const RedisReply& reply) {
    return reply.kind == Kind::status;
}

// ---- Commands

Words time_stamp(std::string name, const Client& client) {
    return {std::move(name), Node::key, std::to_string(client.deadline.count())};
}

/// Returns the same words each time.
auto always(Words words) {
    return [words = std::move(words)](const Client&) { return words; };
}

const auto expire = always({"EXPIRE", Node::key, "10"});
const auto get = always({"GET", Node::key});

using Value = std::function<std::string(const Client&)>;

auto set_nx_px(Value value) {
    return [value = std::move(value)](const Client& client) {
        return Words{"SET", Node::key, value(client), "NX", "PX", "10000"};
    };
}

auto compare_and_delete(Value value) {
    return [value = std::move(value)](const Client& client) {
        return Words{"EVAL", std::string{detail::scripts::compare_and_delete.text}, "1", Node::key,
                     value(client)};
    };
}

// ---- Conclusions

void stop(Client& client, const RedisReply&, seconds) {
    client.stop();
}

void go_on(Client& client, const RedisReply&, seconds) {
    client.go_on();
}

void acquire(Client& client, const RedisReply&, seconds) {
    client.acquired();
}

void acquire_if_ok(Client& client, const RedisReply& reply, seconds) {
    is_ok(reply) ? client.acquired() : client.stop();
}

void acquire_or_go_on(Client& client, const RedisReply& reply, seconds) {
    is_ok(reply) ? client.acquired() : client.go_on();
}

// ---- The patterns. If a description leaves a detail open, the pattern has the best choice. Patterns about
// acquiring let their leases expire, and never delete a key that may belong to another client.

/// The commands that the spec and the library send to a node. A refused attempt is released as well (S17).
Pattern page(const Value& value = &Client::owner) {
    return {
        {set_nx_px(value), acquire_or_go_on},
        {compare_and_delete(value), stop},
    };
}

/// S40-S42. The value is the instant at which the lease ends. After that another client takes the lock over.
Pattern time_stamps(Pattern take_over) {
    const std::size_t done = take_over.size() + 3;
    Pattern pattern{
        {[](const Client& client) { return time_stamp("SETNX", client); },
         [done](Client& client, const RedisReply& reply, seconds) {
             if (reply.integer == 0) return client.go_on();
             client.go_to(done - 1);
             client.acquired();
         }},
        {get,
         [](Client& client, const RedisReply& reply, seconds now) {
             const bool expired = reply.kind == Kind::bulk && seconds{std::stol(reply.text)} <= now;
             client.deadline = now + Client::ttl;
             expired ? client.go_on() : client.stop();
         }},
    };
    for (auto& step : take_over) pattern.push_back(std::move(step));
    return pattern;
}

/// S41.
Pattern del_then_setnx() {
    return time_stamps({
        {always({"DEL", Node::key}), go_on},
        {[](const Client& client) { return time_stamp("SETNX", client); },
         [](Client& client, const RedisReply& reply, seconds) {
             reply.integer == 1 ? client.acquired() : client.stop();
         }},
    });
}

/// S42. A client wins if it gets an instant in the past, or nothing.
Pattern getset() {
    return time_stamps({
        {[](const Client& client) { return time_stamp("GETSET", client); },
         [](Client& client, const RedisReply& reply, seconds now) {
             const bool won = reply.kind == Kind::nil || seconds{std::stol(reply.text)} <= now;
             won ? client.acquired() : client.stop();
         }},
    });
}

/// S43.
Pattern deadline_then_del() {
    return {
        {set_nx_px(&Client::owner), acquire_if_ok},
        {nullptr,
         [](Client& client, const RedisReply&, seconds now) {
             if (!client.holds_by(now)) return client.stop();
             client.holding = false;
             client.go_on();
         }},
        {always({"DEL", Node::key}), stop},
    };
}

/// S44.
Pattern setnx_then_expire() {
    return {
        {[](const Client& client) {
             return Words{"SETNX", Node::key, client.owner()};
         },
         [](Client& client, const RedisReply& reply, seconds) {
             reply.integer == 1 ? client.go_on() : client.stop();
         }},
        {expire, acquire},
    };
}

/// S45.
Pattern getbit_then_setbit() {
    return {
        {always({"GETBIT", Node::key, "0"}),
         [](Client& client, const RedisReply& reply, seconds) {
             reply.integer == 0 ? client.go_on() : client.stop();
         }},
        {always({"SETBIT", Node::key, "0", "1"}), go_on},
        {expire, acquire},
    };
}

/// S46. Without `watch`, the pattern lacks WATCH.
Pattern release_in_steps(bool watch) {
    constexpr std::size_t watching = 2;
    constexpr std::size_t deleting = 4;
    constexpr std::size_t giving_up = 5;
    const auto look = [](Client& client, const RedisReply& reply, seconds) {
        client.holding = false;
        client.go_to(reply.text == client.owner() ? deleting : giving_up);
    };
    const auto again_if_touched = [](Client& client, const RedisReply& reply, seconds) {
        reply.kind == Kind::nil ? client.go_to(watching) : client.stop();
    };
    return {
        {set_nx_px(&Client::owner), acquire_if_ok},
        {watch ? always({"WATCH", Node::key}) : get, go_on},
        {get, look},
        {always(watch ? Words{"MULTI", "DEL", Node::key, "EXEC"} : Words{"DEL", Node::key}),
         again_if_touched},
        {always({"UNWATCH"}), stop},
    };
}

// ---- The document

/// Returns all indented lines of docs/why-not.md below the heading that names `number`.
std::string shown_for(const std::string& number) {
    std::ifstream document{REDLOCK_DOCUMENTS "/why-not.md"};
    EXPECT_TRUE(document) << "no docs/why-not.md";
    std::string blocks;
    bool here = false;
    for (std::string line; std::getline(document, line);) {
        if (line.starts_with("## ")) here = line.find(number) != std::string::npos;
        if (here && line.starts_with("    ")) blocks += line.substr(4) + "\n";
    }
    return blocks;
}

// ---- The tests

void expect_shown(const std::string& number, const std::string& schedules) {
    EXPECT_NE(schedules, "") << number << ": none found";
    EXPECT_EQ(shown_for(number), schedules) << "docs/why-not.md, " << number << ": show this one:\n"
                                            << schedules;
}

std::string either(const Pattern& pattern, const State& state, Node& node) {
    const auto wrong = two_holders(pattern, state, node);
    return wrong.empty() ? held_for_ever(pattern, state, node) : wrong;
}

void expect_none(const Pattern& pattern, const Bounds& bounds = {}) {
    const auto found = shortest_schedule(pattern, either, bounds);
    EXPECT_EQ(found.schedule, "");
    EXPECT_GT(found.states, 10'000U);
}

constexpr Bounds clock_ahead{.ahead = seconds{15}};

TEST(OlderPatterns, AreReplacedByASafePattern) {
    expect_none(page());
    expect_none(page(), clock_ahead);
}

TEST(OlderPatterns, DependOnClocksIfTheyStoreATimeStamp) {
    expect_shown("S40", shortest_schedule(getset(), two_holders, clock_ahead).schedule);
}

TEST(OlderPatterns, HaveTwoHoldersWithDelThenSetnx) {
    expect_shown("S41", shortest_schedule(del_then_setnx(), two_holders).schedule);
}

TEST(OlderPatterns, HaveTwoHoldersWithGetset) {
    expect_shown("S42", shortest_schedule(getset(), two_holders).schedule);
}

TEST(OlderPatterns, DeleteAnotherLockAfterACheckOfTheClock) {
    expect_shown("S43", shortest_schedule(deadline_then_del(), two_holders).schedule);
}

TEST(OlderPatterns, LeaveALockForEverBetweenSetnxAndExpire) {
    expect_shown("S44", shortest_schedule(setnx_then_expire(), held_for_ever).schedule);
}

TEST(OlderPatterns, HaveTheSameRaceAndDeadlockWithBits) {
    const auto pattern = getbit_then_setbit();
    expect_shown("S45", shortest_schedule(pattern, two_holders).schedule +
                            shortest_schedule(pattern, held_for_ever).schedule);
}

TEST(OlderPatterns, AreSafeOnlyWithWatch) {
    expect_none(release_in_steps(true));
    EXPECT_NE(shortest_schedule(release_in_steps(false), two_holders).schedule, "");
}

// S46. A release needs three round trips, and three more whenever another client changes the key.
TEST(OlderPatterns, NeedMoreRoundTripsWithWatch) {
    for (const int touches : {0, 1, 2, 3}) {
        EXPECT_EQ(longest_release(release_in_steps(true), touches).round_trips, 3 * (1 + touches));
        EXPECT_EQ(longest_release(page(), touches).round_trips, 1);
    }
    expect_shown("S46", longest_release(release_in_steps(true), 1).schedule);
}

// owner_test.cpp shows that a caller cannot give a Lock such a value.
TEST(OlderPatterns, HaveTwoHoldersIfClientsShareAValue) {
    const auto shared = page([](const Client&) { return "shared"; });
    expect_shown("S53", shortest_schedule(shared, two_holders).schedule);
}

}  // namespace
}  // namespace redlock::test

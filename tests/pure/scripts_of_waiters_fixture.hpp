// What the tests of the scripts for waiters share: queues, and those that wait in them.
#pragma once

#include "scripts_fixture.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <string>

namespace redlock::test {

/// Their queues are queue:a, queue:b; those that live listen to their channels.
struct Waiters : Scripts {
    Waiters() {
        redis.on_publish([this](auto channel, auto message) -> std::optional<std::size_t> {
            if (!may_publish) return std::nullopt;
            if (!living.contains(std::string{channel})) return 0;
            heard.emplace_back(message);
            return 1;
        });
    }

    static Words queues_of(const Words& resources) {
        Words queues;
        for (const auto& resource : resources) queues.push_back("queue:" + resource);
        return queues;
    }
    static Words with_queues(const Words& resources) {
        auto keys = resources;
        for (const auto& queue : queues_of(resources)) keys.push_back(queue);
        return keys;
    }

    // ---- As src/wire/command_encoding.hpp sends them.

    std::string release(const std::string& owner, const std::string& ticket = "", const char* first = "1",
                        const Words& resources = {"a"}) {
        return run(detail::scripts::release, with_queues(resources),
                   {owner, count(resources), "", ticket, "100", first});
    }
    std::string withdraw(const std::string& ticket) { return release(ticket, ticket, "0"); }
    std::string enter(const std::string& ticket, microseconds waited = 0us, const char* may_take = "1",
                      const std::string& former = "") {
        return run(detail::scripts::enter_queue, {"a", "queue:a"},
                   {ticket, "100", std::to_string(waited.count()), "5000", may_take, former});
    }
    std::string leave_and_set(const std::string& ticket) {
        return run(detail::scripts::acquire, with_marker({"a", "queue:a"}),
                   acquisition({"a"}, ticket, "", 10s));
    }
    std::string leave_and_count(const std::string& ticket) {
        return run(detail::scripts::acquire, with_marker({"a", "queue:a", "count:a"}),
                   acquisition({"a"}, ticket, counter_expiry(), 10s));
    }

    /// A waiter that lives, as it has entered while `a` was held.
    void queue(const std::string& ticket, microseconds waited = 0us) {
        living.insert(ticket.substr(0, ticket.find('|')));
        queue_of_an_older_client(ticket, waited);
    }
    /// As a client has entered that knows nothing of signs of life.
    void queue_of_an_older_client(const std::string& ticket, microseconds waited = 0us) {
        ask({"ZADD", "queue:a", std::to_string((now - waited).count()), ticket});
        ask({"PEXPIRE", "queue:a", "5000"});
    }
    void let_scripts_count_listeners() {
        redis.on_numsub([this](auto channel) { return living.count(std::string{channel}); });
    }

    Words queued(const std::string& resource = "a") {
        Words result;
        if (const auto* const set = redis.find("queue:" + resource, now))
            for (const auto& [score, ticket] : set->in_order()) result.emplace_back(ticket);
        return result;
    }

    std::set<std::string> living{};
    bool may_publish = true;
    Words heard{};
};

}  // namespace redlock::test

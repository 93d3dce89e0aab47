// A fixture for tests of leaders: a world, a leader whose term a BlockingRenewals extends, and its reports.
#pragma once

#include "watched.hpp"

#include <redlock/leader.hpp>

#include <functional>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

struct Leadership : Watched {
    static constexpr auto ttl = 15s;
    static constexpr auto margin = 3s;

    LeaderOptions options() {
        return {.ttl = ttl,
                .margin = margin,
                .longest_pause = 8s,
                .watchdog = &queue,
                .on_error = [this](const std::exception_ptr& error) { errors.push_back(what(error)); },
                .on_failure = [this](const Result& result) { failures.push_back(result); }};
    }
    Leader candidate(LeaderOptions its) {
        return {world, the_resource, std::move(its), world.clock, world.entropy};
    }

    static std::string what(const std::exception_ptr& error) {
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& caught) {
            return caught.what();
        }
    }

    /// Another leader holds the resource for this time.
    void another_leads(milliseconds span) { world.occupy(span, 0, 1, 2, 3, 4); }

    /// Records when stop was requested on lost(), and how much of the term was left then.
    struct Notice {
        Notice(const Term& term, Clock& clock)
            : callback(term.lost(), [this, term, &clock] { left = term.remaining(), at = clock.now(); }) {}
        std::optional<Clock::duration> left{};
        Clock::time_point at{};
        std::stop_callback<std::function<void()>> callback;
    };

    Leader leader{world, the_resource, options(), world.clock, world.entropy};
    std::stop_source stop;
    std::vector<std::string> errors;
    std::vector<Result> failures;
    int terms = 0;
};

}  // namespace redlock::test

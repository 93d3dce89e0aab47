// Records what a leader reports to its user.
#pragma once

#include "support/matchers.hpp"

#include <redlock/leader.hpp>

#include <exception>
#include <string>
#include <vector>

namespace redlock::test {

inline std::string what(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& caught) {
        return caught.what();
    }
}

struct LeaderReports {
    static constexpr auto ttl = 15s;
    static constexpr auto margin = 3s;

    LeaderOptions options() {
        return {.ttl = ttl,
                .margin = margin,
                .longest_pause = 8s,
                .on_error = [this](const std::exception_ptr& error) { errors.push_back(what(error)); },
                .on_failure = [this](const Result& result) { failures.push_back(result); }};
    }

    std::vector<std::string> errors{};
    std::vector<Result> failures{};
};

}  // namespace redlock::test

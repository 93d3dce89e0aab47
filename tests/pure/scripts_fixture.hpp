// A fixture for tests of the scripts: a Redis in memory that executes them, and functions that call them.
#pragma once

#include "support/matchers.hpp"
#include "support/redis_model.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/scripts.hpp"

namespace redlock::test {

using std::chrono::microseconds;
using support::RedisModel;
using testing::Pair;
using Words = std::vector<std::string>;

inline const std::string me = "me";

/// A server, its clock, and its keys: resources a, b and c, their counters count:a and so on, and the marker.
struct Scripts : testing::Test {
    std::string ask(const Words& words) { return text_of(redis.execute(words, now)); }

    std::string run(const detail::Script& script, const Words& keys, const Words& arguments) {
        Words words{"EVAL", std::string{script.text}, std::to_string(keys.size())};
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        return ask(words);
    }

    // ---- Calls as src/wire/command_encoding.hpp encodes them.

    std::string release_all(const Words& resources) {
        return run(detail::scripts::release, resources, {me, count(resources), "", "", "", ""});
    }
    std::string hold_remaining(const Words& resources, milliseconds rest) {
        return run(detail::scripts::release, resources,
                   {me, count(resources), std::to_string(rest.count()), "", "", ""});
    }
    std::string acquire(const Words& resources, milliseconds ttl = 10s) {
        return run(detail::scripts::acquire, with_marker(resources), acquisition(resources, "", "", ttl));
    }
    std::string acquire_and_count(const Words& resources, milliseconds ttl = 10s) {
        return run(detail::scripts::acquire, with_marker(with_counters(resources)),
                   acquisition(resources, "", counter_expiry(), ttl));
    }
    std::string extend(const Words& resources, milliseconds ttl = 10s) {
        return run(detail::scripts::extend, with_marker(resources),
                   {me, count(resources), std::to_string(ttl.count()), quarantine_text()});
    }
    std::string raise_counts(const Words& resources, std::int64_t token) {
        return run(detail::scripts::raise_counts, with_marker(with_counters(resources)),
                   {me, count(resources), std::to_string(token), counter_expiry(), quarantine_text()});
    }

    Words acquisition(const Words& resources, const std::string& ticket, const std::string& expiry,
                      milliseconds ttl) const {
        return {me, count(resources), std::to_string(ttl.count()), ticket, expiry, quarantine_text()};
    }
    static std::string count(const Words& resources) { return std::to_string(resources.size()); }
    std::string counter_expiry() const { return std::to_string(keep.count()); }
    std::string quarantine_text() const {
        return quarantine > 0us ? std::to_string(quarantine.count()) : std::string{};
    }
    Words with_marker(Words keys) const {
        if (quarantine > 0us) keys.emplace_back("marker");
        return keys;
    }
    static Words with_counters(const Words& resources) {
        auto keys = resources;
        for (const auto& resource : resources) keys.push_back("count:" + resource);
        return keys;
    }

    // ---- The keys. Counters and the marker contain the identity of the dataset, which these functions omit.

    void hold(const std::string& key, const std::string& value, milliseconds ttl = 10s) {
        const auto whose = is_of_data(key) ? redis.data() : "";
        EXPECT_EQ(ask({"SET", key, whose + value, "PX", std::to_string(ttl.count())}), "OK");
    }
    std::string value(const std::string& key) {
        const auto held = ask({"GET", key});
        return is_of_data(key) && held.starts_with(redis.data()) ? held.substr(redis.data().size()) : held;
    }
    static bool is_of_data(std::string_view key) { return key == "marker" || key.starts_with("count:"); }
    milliseconds ttl(const std::string& key) { return milliseconds{std::stoll(ask({"PTTL", key}))}; }
    std::pair<std::string, milliseconds> value_and_ttl(const std::string& key) {
        return {value(key), ttl(key)};
    }

    RedisModel redis{"run"};
    microseconds now = 1'760'000'000s + 123'456us;
    microseconds quarantine{0};
    milliseconds keep = 24h;
};

}  // namespace redlock::test

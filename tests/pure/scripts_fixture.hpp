// A fixture for tests of the scripts: a Redis in memory that executes them, and functions that call them.
#pragma once

#include "support/redis_model.hpp"

#include <redlock/detail/scripts.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using support::RedisModel;
using testing::StartsWith;
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

    // ---- Calls as detail/command_encoding.hpp encodes them.

    std::string delete_all(const Words& resources) { return run(detail::delete_all, resources, {me}); }
    std::string set_all(const Words& resources, milliseconds ttl = 10s) {
        return run(detail::set_all, with_marker(resources), common(ttl.count(), resources));
    }
    std::string expire_all(const Words& resources, milliseconds ttl = 10s) {
        return run(detail::expire_all, with_marker(resources), common(ttl.count(), resources));
    }
    std::string set_and_count(const Words& resources, milliseconds ttl = 10s) {
        return run(detail::set_and_count, with_marker(with_counters(resources)),
                   counting(ttl.count(), resources));
    }
    std::string raise_count(const Words& resources, std::int64_t fence) {
        return run(detail::raise_count, with_marker(with_counters(resources)), counting(fence, resources));
    }

    Words common(std::int64_t amount, const Words& resources) const {
        return {me, std::to_string(amount), std::to_string(resources.size()),
                std::to_string(quarantine.count())};
    }
    Words counting(std::int64_t amount, const Words& resources) const {
        auto words = common(amount, resources);
        words.insert(words.end() - 1, std::to_string(keep.count()));
        return words;
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

    RedisModel redis{"run"};
    microseconds now = 1'760'000'000s + 123'456us;
    microseconds quarantine{0};
    milliseconds keep = 24h;
};

}  // namespace redlock::test

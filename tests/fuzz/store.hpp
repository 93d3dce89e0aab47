// What a Redis server does with the commands of a lock: its keys with their expiry, and what it answers.
// Written from the meaning of the commands (nodes.hpp), not from the scripts, which it knows by name only.
#pragma once

#include <redlock/clock.hpp>

#include "redis/scripts.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::fuzz {

using Words = std::vector<std::string>;

/// What was asked in a command, as far as it concerns locks.
struct Asked {
    const wire::Script* script = nullptr;  ///< null: plain
    bool acquires = false;
    bool extends = false;
    std::string owner{};
};

struct Answer {
    std::string words{};
    bool granted = false;
};

class Store {
public:
    /// The script that `words` name; null if they are no EVAL and no EVALSHA.
    static const wire::Script* script_in(const Words& words) {
        if (words.size() < 3 || !words[0].starts_with("EVAL")) return nullptr;
        const auto script = std::ranges::find_if(
            wire::scripts, [&](const auto* it) { return it->text == words[1] || it->sha1 == words[1]; });
        return script == wire::scripts.end() ? nullptr : *script;
    }

    static Asked asked_in(const Words& words) {
        Asked asked{.script = script_in(words)};
        const auto* const script = asked.script;
        asked.acquires = words.at(0) == "SET" || script == &wire::set_all || script == &wire::set_and_count;
        asked.extends = script == &wire::compare_and_expire || script == &wire::expire_all;
        if (words[0] == "SET") asked.owner = words.at(2);
        if (script) asked.owner = words.at(3 + std::stoul(words[2]));
        return asked;
    }

    Answer carry_out(const Words& words, Clock::time_point now) {
        if (words[0] == "PING") return {"+PONG\r\n"};
        if (words[0] == "AUTH" || words[0] == "SELECT") return {"+OK\r\n"};
        if (words[0] == "INFO") return {info(words.at(1))};
        if (words[0] == "SET")
            return set({words.at(1)}, words.at(2), ttl_in(words.at(5)), now, "+OK\r\n", "$-1\r\n");
        const auto* const script = script_in(words);
        if (!script) return {"-ERR unknown command\r\n"};
        if (words[0] == "EVALSHA" && !known_.contains(script)) return {"-NOSCRIPT No matching script.\r\n"};
        known_.insert(script);
        const auto keys = std::stoul(words[2]);
        return run(script, {words.begin() + 3, words.begin() + 3 + static_cast<std::ptrdiff_t>(keys)},
                   {words.begin() + 3 + static_cast<std::ptrdiff_t>(keys), words.end()}, now);
    }

    void forget_scripts() { known_.clear(); }

    /// Whether all of the resources hold `owner`.
    bool holds(const Words& resources, std::string_view owner, Clock::time_point now) const {
        return std::ranges::all_of(resources, [&](const auto& it) { return holder(it, now) == owner; });
    }

    bool empty(Clock::time_point now) const {
        return std::ranges::all_of(keys_, [&](const auto& it) { return it.second.until <= now; });
    }

private:
    struct Key {
        std::string owner;
        Clock::time_point until;
    };

    static std::chrono::milliseconds ttl_in(const std::string& word) {
        return std::chrono::milliseconds{std::stoll(word)};
    }

    static std::string info(const std::string& section) {
        const std::string text = section == "server" ? "run_id:0a1b2c\r\n" : "role:master\r\n";
        return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    }

    std::string_view holder(const std::string& resource, Clock::time_point now) const {
        const auto key = keys_.find(resource);
        return key == keys_.end() || key->second.until <= now ? std::string_view{} : key->second.owner;
    }

    Answer run(const wire::Script* script, const Words& keys, const Words& arguments, Clock::time_point now) {
        const auto& owner = arguments.at(0);
        if (script == &wire::compare_and_delete || script == &wire::delete_all)
            return erase(keys, owner, now);
        if (script == &wire::compare_and_expire) return expire(keys, owner, ttl_in(arguments.at(1)), now);
        const auto count = static_cast<std::ptrdiff_t>(std::stoul(arguments.at(2)));
        const Words resources{keys.begin(), keys.begin() + count};
        if (script == &wire::set_all)
            return set(resources, owner, ttl_in(arguments[1]), now, ":1\r\n", ":0\r\n");
        if (script == &wire::expire_all) return expire(resources, owner, ttl_in(arguments[1]), now);
        const Words counters{keys.begin() + count, keys.begin() + 2 * count};
        if (script == &wire::raise_count)
            return holds(resources, owner, now) ? raise(counters, std::stoull(arguments[1]))
                                                : Answer{":0\r\n"};
        return set_and_count(resources, counters, owner, ttl_in(arguments[1]), now);
    }

    Answer set(const Words& resources, const std::string& owner, std::chrono::milliseconds ttl,
               Clock::time_point now, const std::string& yes, const std::string& no) {
        if (!holds(resources, {}, now)) return {no};
        for (const auto& resource : resources) keys_[resource] = {owner, now + ttl};
        return {yes, true};
    }

    Answer set_and_count(const Words& resources, const Words& counters, const std::string& owner,
                         std::chrono::milliseconds ttl, Clock::time_point now) {
        unsigned long long count = 0;
        for (const auto& counter : counters) count = std::max(count, counters_[counter] + 1);
        auto answer = set(resources, owner, ttl, now, ":" + std::to_string(count) + "\r\n", ":0\r\n");
        if (answer.granted)
            for (const auto& counter : counters) counters_[counter] = count;
        return answer;
    }

    Answer raise(const Words& counters, unsigned long long count) {
        for (const auto& counter : counters) counters_[counter] = std::max(counters_[counter], count);
        return {":1\r\n", true};
    }

    Answer expire(const Words& resources, std::string_view owner, std::chrono::milliseconds ttl,
                  Clock::time_point now) {
        if (!holds(resources, owner, now)) return {":0\r\n"};
        for (const auto& resource : resources)
            keys_[resource].until = std::max(keys_[resource].until, now + ttl);
        return {":1\r\n", true};
    }

    Answer erase(const Words& resources, std::string_view owner, Clock::time_point now) {
        const bool all = holds(resources, owner, now);
        for (const auto& resource : resources)
            if (holder(resource, now) == owner) keys_.erase(resource);
        return {all ? ":1\r\n" : ":0\r\n", all};
    }

    std::map<std::string, Key> keys_{};
    std::map<std::string, unsigned long long> counters_{};
    std::set<const wire::Script*> known_{};
};

}  // namespace redlock::fuzz

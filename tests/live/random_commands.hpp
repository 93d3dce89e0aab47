// Random commands and calls of the scripts, to compare the model of Redis with a real server.
#pragma once

#include "support/redis_model.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "wire/scripts.hpp"

namespace redlock::test {

using namespace std::chrono_literals;
using support::RedisModel;
using Words = std::vector<std::string>;

/// Valid and invalid commands on a few keys and values, so that they depend on one another.
class RandomCommands {
public:
    /// `data`: see RedisModel::data().
    RandomCommands(std::uint64_t seed, std::string data) : engine_(seed), data_(std::move(data)) {}

    bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }

    RedisModel::Time step() {
        return one_of<RedisModel::Time>(
            {0us, 0us, 1us, 400us, 1ms, 1ms, 2ms, 5ms, 50ms, 1s, 1min, 25h, -1ms, -1s});
    }

    Words plain(RedisModel::Time now) {
        switch (below(13)) {
            case 0: return {"GET", key()};
            case 1: return chance(50) ? Words{"EXISTS", key(), key()} : Words{"TYPE", key()};
            case 2: return {"DEL", key()};
            case 3: return {"PTTL", key()};
            case 4: return {"PEXPIRE", key(), span()};
            case 5: return chance(80) ? Words{"RPUSH", key(), "a"} : Words{"FLUSHALL"};
            case 6: return {"SET", key(), value(now)};
            case 7: return {"set", key(), value(now), "px", span()};
            case 8: return {"Set", key(), value(now), "PX", span(), "nx"};
            case 9:
                return one_of<Words>({{"TIME"}, {"PING"}, {"PING", "x"}, {"SELECT", "0"}, {"SELECT", "16"}});
            case 10: return truncated({"SET", key(), value(now), "PX", span(), "NX"});
            case 11: return {"PEXPIREAT", key(), instant(now)};
            default: return {"SET", key(), value(now), "NX", "PX", span()};
        }
    }

    Words of_queues() {
        switch (below(9)) {
            case 0: return {"ZADD", queue(), score(), ticket()};
            case 1: return {"ZADD", queue(), score(), ticket(), score(), ticket()};
            case 2: return truncated({"ZADD", queue(), "NX", score(), ticket(), score(), ticket()});
            case 3: return chance(50) ? Words{"ZPOPMIN", queue()} : Words{"ZRANK", queue(), ticket()};
            case 4: return chance(80) ? Words{"ZREM", queue(), ticket(), ticket()} : Words{"ZCARD", queue()};
            case 5: return {"ZSCORE", queue(), ticket()};
            case 6: return {chance(50) ? "ZREMRANGEBYSCORE" : "ZCOUNT", queue(), bound(), bound()};
            case 7: return truncated({"ZRANGE", queue(), place(), place(), "WITHSCORES"});
            default:
                return {"PUBLISH", one_of<std::string>({"redlock:wake:alive", "redlock:wake:dead", ""}),
                        ticket()};
        }
    }

    Words script(RedisModel::Time now) {
        using namespace detail::scripts;
        const auto* const script = all.at(below(all.size()));
        const auto is = [script](const detail::Script& other) { return script == &other; };
        if (is(detail::scripts::query))
            return call(script, {"resource1", "queue1", "note1", "readers1", "counter1"}, {}, now);
        if (is(enter_queue)) {
            const Words arguments{ticket(), reservation_ttl(),
                                  one_of<std::string>({"0", "1", "5000000", "-7"}),
                                  one_of<std::string>({"5000", "50", "x"}), one_of<std::string>({"0", "1"})};
            return call(script, {"resource1", "queue1"}, arguments, now);
        }
        if (is(reader_release)) return call(script, {"resource1", "readers1"}, {owner()}, now);
        const bool reader = is(reader_acquire) || is(reader_extend) || is(reader_raise_counts);
        const auto resources = reader ? 1 : 1 + below(3);
        Words keys;
        add_keys(keys, "resource", resources);
        if (is(exist) || is(compare_and_delete)) return call(script, keys, {owner()}, now);
        if (is(compare_and_expire)) return call(script, keys, {owner(), span()}, now);
        if (is(describe_holder)) {
            add_keys(keys, "note", resources);
            return call(script, keys, {owner(), "a note"}, now);
        }
        return of_several(script, reader, std::move(keys), now);
    }

    /// A call of a script that gets a number of resources. An empty argument says that a key is left out.
    Words of_several(const detail::Script* script, bool reader, Words keys, RedisModel::Time now) {
        using namespace detail::scripts;
        const auto is = [script](const detail::Script& other) { return script == &other; };
        const auto resources = keys.size();
        const bool releases = is(detail::scripts::release);
        const bool raises = is(raise_counts) || is(reader_raise_counts);
        const bool queue = chance(50) && (releases || (is(acquire) && resources == 1));
        const bool counts = raises || ((is(acquire) || is(reader_acquire)) && chance(50));
        if (reader) add_keys(keys, "readers", 1);
        if (queue) add_keys(keys, "queue", resources);
        if (counts) add_keys(keys, "counter", resources);
        Words arguments{queue && chance(30) ? ticket() : owner(), std::to_string(resources)};
        if (releases) {
            arguments.insert(arguments.end(),
                             {chance(80) ? "" : span(), chance(50) ? "" : ticket(),
                              queue ? reservation_ttl() : "", one_of<std::string>({"", "1"})});
            return call(script, keys, arguments, now);
        }
        const auto quarantine =
            one_of<std::string>({"", "", "1", "2000", "50000", "10000000", "9000000000000"});
        if (!quarantine.empty()) keys.emplace_back("marker");
        arguments.push_back(raises ? count(now) : one_of<std::string>({"1000", "5", span()}));
        if (is(acquire)) arguments.push_back(queue ? ticket() : "");
        if (!is(extend) && !is(reader_extend))
            arguments.push_back(counts ? one_of<std::string>({"86400000", "10"}) : "");
        arguments.push_back(quarantine);
        return call(script, keys, arguments, now);
    }

    static void add_keys(Words& keys, const std::string& name, std::size_t count) {
        for (std::size_t i = 1; i <= count; ++i) keys.push_back(name + std::to_string(i));
    }

    Words call(const detail::Script* script, Words keys, Words arguments, RedisModel::Time now) {
        if (chance(3)) keys.at(below(keys.size())) = key();
        if (chance(2) && !arguments.empty()) arguments.at(below(arguments.size())) = value(now);
        if (chance(2)) keys.pop_back();
        Words words{chance(50) ? "EVAL" : "EVALSHA", std::string{script->text}, std::to_string(keys.size())};
        if (words[0] == "EVALSHA") words[1] = script->sha1;
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        return chance(2) ? truncated(words) : words;
    }

    std::string key() {
        return one_of<std::string>({"resource1", "resource2", "resource3", "counter1", "counter2", "counter3",
                                    "marker", "queue1", "readers1"});
    }

private:
    std::size_t below(std::size_t end) { return engine_() % end; }
    template <class T>
    T one_of(std::initializer_list<T> choice) {
        return *(choice.begin() + below(choice.size()));
    }

    std::string queue() { return chance(90) ? one_of<std::string>({"queue1", "queue2", "readers1"}) : key(); }
    std::string ticket() {
        return one_of<std::string>({"redlock:wake:dead|1", "redlock:wake:dead|2", "redlock:wake:dead|3",
                                    "redlock:wake:alive|1", "redlock:wake:alive|2", "redlock:wake:alive|3",
                                    "none", "|", ""});
    }
    /// Returns only scores that all servers parse and print alike. Redis 8 accepts neither blanks nor
    /// hexadecimal digits.
    std::string score() {
        return one_of<std::string>({"1", "1", "2", "-3", "2.5", "0.25", "1760000000123456", "1.0", "1e3",
                                    "inf", "-inf", "nan", "x", ""});
    }
    std::string bound() { return (chance(50) ? "(" : "") + score(); }
    std::string place() { return one_of<std::string>({"0", "1", "2", "7", "-1", "-2", "-7", "x"}); }
    std::string instant(RedisModel::Time now) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
        return one_of<std::string>(
            {std::to_string(ms + 1000), std::to_string(ms), std::to_string(ms + 1), "0", "-5", "x", ""});
    }
    std::string reservation_ttl() { return one_of<std::string>({"100", "100", "5", "0", "x"}); }
    std::string owner() { return one_of<std::string>({"me", "me", "me", "you"}); }
    std::string span() {
        return one_of<std::string>({"1", "2", "5", "50", "1000", "60000", "2592000000", "0", "-5", "x", "",
                                    "1.5", "01", "+1", "9223372036854775807", "9223372036854775808"});
    }
    std::string count(RedisModel::Time now) {
        return one_of<std::string>({std::to_string(now.count()), std::to_string(now.count() + 7), "5",
                                    std::to_string((now + 23h).count()), std::to_string((now + 25h).count()),
                                    std::to_string((now + 24h).count()),
                                    std::to_string((now + 24h).count() + 1)});
    }
    std::string value(RedisModel::Time now) {
        const auto whose = chance(50) ? data_ : chance(20) ? "another:one:" : "";
        return whose + word(now);
    }
    std::string word(RedisModel::Time now) {
        return chance(50) ? count(now)
                          : one_of<std::string>({"me", "you", "redlock:shared", "-1", "0", "1e3", " 7 ",
                                                 "0x10", "nan", "inf", "8999999999999999", "9000000000000000",
                                                 "9223372036854775807", std::string{"\0\r\n", 3}});
    }
    Words truncated(Words words) {
        words.resize(1 + below(words.size()));
        return words;
    }

    std::mt19937_64 engine_;
    std::string data_;
};

}  // namespace redlock::test

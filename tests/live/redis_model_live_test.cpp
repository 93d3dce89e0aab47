// The Redis model does what a real server does: random commands and scripts to both, whose wall clock stands
// where the test puts it, so that every reply is the same to the microsecond.
//
// REDLOCK_SEED=17 runs that seed in place of the usual ones.
#include "support/redis_model.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_directory.hpp"

#include <redlock/detail/scripts.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;
using support::RedisModel;
using support::RedisReply;
using Words = std::vector<std::string>;

/// A real server and the model, at the same time.
class Both {
public:
    Both() {
        set_clock(1'760'000'000s + 123'456us);
        // Else a key may go, or not, while the clock is ahead for a moment.
        EXPECT_EQ(connection_.ask({"DEBUG", "SET-ACTIVE-EXPIRE", "0"}), "OK");
    }

    RedisModel::Time now() const { return now_; }
    void set_clock(RedisModel::Time now) {
        now_ = now;
        const auto next = directory_ / "next";
        std::ofstream{next} << '@' << now.count();
        std::filesystem::rename(next, directory_ / "clock");
    }
    void pass(RedisModel::Time span) { set_clock(now_ + span); }

    /// Both have one that listens to `channel`.
    void subscribe(const std::string& channel) {
        listener_.ask({"SUBSCRIBE", channel});
        model_.on_publish([this, channel](auto theirs, auto message) -> std::size_t {
            if (theirs != channel) return 0;
            heard_.emplace_back(message);
            return 1;
        });
    }

    /// The one has heard what the other has.
    testing::AssertionResult agree_about_messages() {
        for (const auto& message : heard_)
            if (const auto real = listener_.read_reply().elements.at(2).text; real != message)
                return testing::AssertionFailure() << "heard " << real << ", the model " << message;
        heard_.clear();
        return testing::AssertionSuccess();
    }

    /// False, with what happened at last: the replies differ.
    testing::AssertionResult agree(const Words& words) {
        const auto real = connection_.ask_for_reply(words);
        const auto simulated = model_.execute(words, now_);
        log_.push_back(std::to_string(now_.count()) + " " + shown(words) + " -> " + shown(real));
        if (log_.size() > 30) log_.pop_front();
        if (alike(real, simulated)) return testing::AssertionSuccess();
        auto result = testing::AssertionFailure() << "\n";
        for (const auto& line : log_) result << line << '\n';
        return result << "the model answers " << shown(simulated);
    }

    /// The same of the value and the expiry of each key.
    testing::AssertionResult agree_about(const Words& keys) {
        for (const auto& key : keys)
            for (const auto* const command : {"GET", "PTTL"})
                if (auto result = agree({command, key}); !result) return result;
        return testing::AssertionSuccess();
    }

private:
    /// Of an error the first word counts: the rest differs between servers.
    static bool alike(const RedisReply& a, const RedisReply& b) {
        const auto first_word = [](const RedisReply& it) { return it.text.substr(0, it.text.find(' ')); };
        return a.is_error() && b.is_error() ? first_word(a) == first_word(b) : a == b;
    }

    static std::string shown(const Words& words) {
        std::string line;
        for (std::string word : words) {
            for (const auto* const script : detail::scripts)
                if (word == script->text) word = "script" + std::to_string(detail::number_of(script));
            line += (line.empty() ? "" : " ") + word;
        }
        return line;
    }

    static std::string shown(const RedisReply& reply) {
        constexpr std::array kinds{"nil", "status", "error", "integer", "bulk", "array"};
        return kinds.at(static_cast<std::size_t>(reply.kind)) + std::string{" "} + text_of(reply);
    }

    support::TemporaryDirectory directory_{};
    RedisModel::Time now_{};
    support::RedisServer server_{
        support::RedisConfig{}.clock_set_by(directory_ / "clock").line("enable-debug-command local")};
    support::RespConnection connection_{server_.connect()};
    support::RespConnection listener_{server_.connect()};
    RedisModel model_{"run"};
    Words heard_{};  // by the one that listens to the model
    std::deque<std::string> log_{};
};

/// Valid and invalid commands on a few keys and values, which therefore depend on one another.
class RandomCommands {
public:
    explicit RandomCommands(std::uint64_t seed) : engine_(seed) {}

    bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }

    RedisModel::Time step() {
        return one_of<RedisModel::Time>(
            {0us, 0us, 1us, 400us, 1ms, 1ms, 2ms, 5ms, 50ms, 1s, 1min, 25h, -1ms, -1s});
    }

    Words plain(RedisModel::Time now) {
        switch (below(12)) {
            case 0: return {"GET", key()};
            case 1: return {"EXISTS", key(), key()};
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
            default: return {"SET", key(), value(now), "NX", "PX", span()};
        }
    }

    Words of_queues() {
        switch (below(6)) {
            case 0: return {"ZADD", queue(), score(), ticket()};
            case 1: return {"ZADD", queue(), score(), ticket(), score(), ticket()};
            case 2: return truncated({"ZADD", queue(), "NX", score(), ticket(), score(), ticket()});
            case 3: return chance(50) ? Words{"ZPOPMIN", queue()} : Words{"ZRANK", queue(), ticket()};
            case 4: return {"ZREM", queue(), ticket(), ticket()};
            default: return {"PUBLISH", one_of<std::string>({"alive", "dead", ""}), ticket()};
        }
    }

    Words script(RedisModel::Time now) {
        const auto* const script = detail::scripts.at(below(detail::scripts.size()));
        if (script->text.find("zrem") != script->text.npos || script == &detail::enter_queue)
            return for_waiters(script, now);
        const auto resources = 1 + below(3);
        Words keys;
        Words arguments{owner()};
        for (std::size_t i = 1; i <= resources; ++i) keys.push_back("resource" + std::to_string(i));
        if (script == &detail::compare_and_expire) arguments.push_back(span());
        if (takes_quarantine(script)) {
            arguments.push_back(script == &detail::raise_count ? count(now)
                                                               : one_of<std::string>({"1000", "5", span()}));
            arguments.push_back(std::to_string(resources));
            if (counts(script)) {
                for (std::size_t i = 1; i <= resources; ++i) keys.push_back("counter" + std::to_string(i));
                arguments.push_back(one_of<std::string>({"86400000", "10"}));
            }
            const auto quarantine =
                one_of<std::string>({"0", "0", "1", "2000", "50000", "10000000", "9000000000000"});
            if (quarantine != "0") keys.push_back("marker");
            arguments.push_back(quarantine);
        }
        return call(script, keys, arguments, now);
    }

    Words for_waiters(const detail::Script* script, RedisModel::Time now) {
        Words keys{"resource1", "queue1"};
        Words arguments{ticket(), patience(), one_of<std::string>({"0", "1", "5000000", "-7"}),
                        one_of<std::string>({"5000", "50", "x"}), one_of<std::string>({"0", "1"})};
        if (script == &detail::delete_and_wake) {
            if (chance(50)) keys = {"resource1", "resource2", "queue1", "queue2"};
            arguments = {chance(30) ? ticket() : owner(), chance(50) ? "" : ticket(), patience(),
                         one_of<std::string>({"0", "1"})};
        } else if (script != &detail::enter_queue) {
            arguments = {owner(), ticket(), span(), "1", one_of<std::string>({"0", "0", "2000"})};
            if (script == &detail::leave_and_count) {
                keys.emplace_back("counter1");
                arguments.insert(arguments.end() - 1, "86400000");
            }
            if (arguments.back() != "0") keys.emplace_back("marker");
        }
        return call(script, keys, arguments, now);
    }

    Words call(const detail::Script* script, Words keys, Words arguments, RedisModel::Time now) {
        if (chance(3)) keys.at(below(keys.size())) = key();
        if (chance(2)) arguments.at(below(arguments.size())) = value(now);
        if (chance(2)) keys.pop_back();
        Words words{chance(50) ? "EVAL" : "EVALSHA", std::string{script->text}, std::to_string(keys.size())};
        if (words[0] == "EVALSHA") words[1] = script->sha1;
        words.insert(words.end(), keys.begin(), keys.end());
        words.insert(words.end(), arguments.begin(), arguments.end());
        return chance(2) ? truncated(words) : words;
    }

    std::string key() {
        return one_of<std::string>(
            {"resource1", "resource2", "resource3", "counter1", "counter2", "counter3", "marker", "queue1"});
    }

private:
    static bool takes_quarantine(const detail::Script* script) {
        return script->text.find("ARGV[#ARGV]") != script->text.npos;
    }
    static bool counts(const detail::Script* script) {
        return script == &detail::set_and_count || script == &detail::raise_count;
    }

    std::size_t below(std::size_t end) { return engine_() % end; }
    template <class T>
    T one_of(std::initializer_list<T> choice) {
        return *(choice.begin() + below(choice.size()));
    }

    std::string queue() { return chance(90) ? one_of<std::string>({"queue1", "queue2"}) : key(); }
    std::string ticket() {
        return one_of<std::string>(
            {"dead|1", "dead|2", "dead|3", "alive|1", "alive|2", "alive|3", "none", "|", ""});
    }
    /// Such as all servers write alike.
    std::string score() {
        return one_of<std::string>({"1", "1", "2", "-3", "2.5", "0.25", "1760000000123456", "1.0", "1e3",
                                    "inf", "-inf", "nan", "x", "", " 1", "0x10"});
    }
    std::string patience() { return one_of<std::string>({"100", "100", "5", "0", "x"}); }
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
        return chance(50) ? count(now)
                          : one_of<std::string>({"me", "you", "-1", "0", "1e3", " 7 ", "0x10", "nan", "inf",
                                                 "8999999999999999", "9000000000000000",
                                                 "9223372036854775807", std::string{"\0\r\n", 3}});
    }
    Words truncated(Words words) {
        words.resize(1 + below(words.size()));
        return words;
    }

    std::mt19937_64 engine_;
};

std::vector<std::uint64_t> seeds() {
    if (const char* const seed = std::getenv("REDLOCK_SEED")) return {std::strtoull(seed, nullptr, 10)};
    return {1, 2, 3, 4, 5, 6};
}

class RedisModelLikeRedis : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seed, RedisModelLikeRedis, testing::ValuesIn(seeds()),
                         testing::PrintToStringParamName());

TEST_P(RedisModelLikeRedis, AnswersRandomCommandsAndScripts) {
    Both both;
    both.subscribe("alive");
    ASSERT_TRUE(both.agree({"FLUSHALL"}));
    for (const auto* const script : detail::scripts)
        ASSERT_TRUE(both.agree({"SCRIPT", "LOAD", std::string{script->text}}));
    RandomCommands random{GetParam()};
    for (int i = 0; i < 1'000; ++i) {
        if (random.chance(30)) both.pass(random.step());
        const auto words = random.chance(60)   ? random.script(both.now())
                           : random.chance(60) ? random.plain(both.now())
                                               : random.of_queues();
        ASSERT_TRUE(both.agree(words)) << "REDLOCK_SEED=" << GetParam() << ", command " << i;
        const auto keys = words.size() > 3 && words[0].starts_with("EVAL")
                              ? Words{words.begin() + 3, words.end()}
                              : Words{random.key()};
        ASSERT_TRUE(both.agree_about(keys)) << "REDLOCK_SEED=" << GetParam() << ", after command " << i;
        ASSERT_TRUE(both.agree_about_messages()) << "REDLOCK_SEED=" << GetParam() << ", after command " << i;
    }
    for (const auto* const queue : {"queue1", "queue2"})
        for (int i = 0; i < 12; ++i) ASSERT_TRUE(both.agree({"ZPOPMIN", queue})) << "what is left in it";
}

// What scripts may return, what they may not do.
TEST(RedisModelLikeRedis, RunsLua) {
    Both both;
    ASSERT_TRUE(both.agree({"RPUSH", "list", "a"}));
    for (const auto* const text : {"return 1",
                                   "return 1.9",
                                   "return -1.9",
                                   "return 1e300",
                                   "return 0/0",
                                   "return 'a'",
                                   "return true",
                                   "return false",
                                   "return nil",
                                   "",
                                   "return {}",
                                   "return {1,'a',{2},nil,3}",
                                   "return {1.9,true,false,'x'}",
                                   "return {ok='fine'}",
                                   "return {ok='a\\r\\nb'}",
                                   "return {ok=1}",
                                   "return {err='My error'}",
                                   "return {err=1}",
                                   "return {err=''}",
                                   "return redis.error_reply('My')",
                                   "return redis.error_reply('My error')",
                                   "return redis.error_reply('-My error')",
                                   "return redis.status_reply('fine')",
                                   "return redis.sha1hex('a')",
                                   "return KEYS",
                                   "return ARGV",
                                   "KEYS[1]='x' return KEYS",
                                   "KEYS=1",
                                   "a=1",
                                   "return a",
                                   "return os.time()",
                                   "return print",
                                   "redis.foo()",
                                   "return 1 < nil",
                                   "retrn 1",
                                   "error('x')",
                                   "error({err='My error'})",
                                   "error()",
                                   "return redis.call('ping')",
                                   "return redis.call('time')",
                                   "return redis.call('get','list')",
                                   "return redis.pcall('get','list')",
                                   "return redis.pcall('get','list').err",
                                   "return redis.call()",
                                   "return redis.call({})",
                                   "return redis.call('get',true)",
                                   "return redis.call('get')",
                                   "return redis.call('nothing')",
                                   "return redis.pcall('nothing')",
                                   "return redis.call('eval','return 1',0)",
                                   "return redis.call('auth','x')",
                                   "return type(redis.call('get','none'))",
                                   "return tostring(1760000000000000)",
                                   "redis.call('set','a',1760000000000000) return redis.call('get','a')",
                                   "redis.call('set','a',1.5) return redis.call('get','a')",
                                   "redis.call('set','a',1e20) return redis.call('get','a')",
                                   "return redis.call('set','a','b','px','1x')",
                                   "return redis.call('set','a','b').ok",
                                   "return string.format('%.0f',1760000000000000)",
                                   "return tonumber('0x10')",
                                   "return redis.call('zadd','set','2.5','m')",
                                   "return redis.call('zadd','set','x','m')",
                                   "return redis.pcall('zpopmin','list').err",
                                   "return type(redis.call('zrank','set','none'))",
                                   "return redis.call('zpopmin','set')[2]",
                                   "return #redis.call('zpopmin','none')",
                                   "return redis.call('publish','nobody','m')",
                                   "return tonumber('')"})
        EXPECT_TRUE(both.agree({"EVAL", text, "1", "key", "argument", "another"})) << text;
}

// What is wrong with a command before it is carried out.
TEST(RedisModelLikeRedis, RefusesWhatIsNoCommand) {
    Both both;
    const std::string sha1(40, 'f');
    const std::initializer_list<Words> commands{{"nothing", "a"},
                                                {""},
                                                {"get"},
                                                {"GET", "a", "b"},
                                                {"set", "a"},
                                                {"set", "a", "b", "px"},
                                                {"set", "a", "b", "nothing"},
                                                {"set", "a", "b", "px", "1", "px", "2"},
                                                {"set", "a", "b", "nx", "NX"},
                                                {"exists"},
                                                {"del"},
                                                {"time", "x"},
                                                {"ping", "a", "b"},
                                                {"flushall", "x"},
                                                {"flushall", "sync"},
                                                {"select", "x"},
                                                {"select", "-1"},
                                                {"select", "15"},
                                                {"auth", "x"},
                                                {"auth", "default", "x"},
                                                {"auth", "nobody", "x"},
                                                {"auth", "a", "b", "c"},
                                                {"pexpire", "a", "1", "x"},
                                                {"zadd", "a", "1"},
                                                {"zadd", "a", "nx", "1"},
                                                {"zadd", "a", "nx", "x", "m"},
                                                {"zadd", "a", "1", "m", "2"},
                                                {"zpopmin"},
                                                {"zrank", "a"},
                                                {"zrem", "a"},
                                                {"publish", "a"},
                                                {"script"},
                                                {"script", "load"},
                                                {"script", "nothing"},
                                                {"script", "load", "return"},
                                                {"script", "load", "this is none"},
                                                {"eval", "return 1"},
                                                {"eval", "return 1", "x"},
                                                {"eval", "return 1", "-1"},
                                                {"eval", "return 1", "1"},
                                                {"eval", "return 1", "0"},
                                                {"evalsha", "f", "0"},
                                                {"evalsha", sha1, "0"},
                                                {"evalsha", sha1, "-1"},
                                                {"evalsha", sha1, "1"},
                                                {"evalsha", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"}};
    for (const auto& words : commands) EXPECT_TRUE(both.agree(words)) << testing::PrintToString(words);
}

}  // namespace
}  // namespace redlock::test

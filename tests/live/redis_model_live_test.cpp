// The model of Redis behaves like a real server. Both get the same random commands and scripts. The test sets
// the wall clock of the server, so that every reply is the same to the microsecond.
//
// REDLOCK_SEED=17 runs that seed instead of the usual ones.
#include "random_commands.hpp"

#include "support/redis_model.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "wire/scripts.hpp"

namespace redlock::test::redis_model_live_test {
namespace {

using support::RedisReply;

/// A real server and the model, at the same time.
class Both {
public:
    Both() {
        set_clock(1'760'000'000s + 123'456us);
        // The test sets the clock forward and back. A server that removes expired keys in the background may
        // or may not have removed one by the time the clock is set back, so this is disabled.
        EXPECT_EQ(connection_.ask({"DEBUG", "SET-ACTIVE-EXPIRE", "0"}), "OK");
    }

    RedisModel::Time now() const { return now_; }
    std::string data() const { return model_.data(); }
    void set_clock(RedisModel::Time now) {
        now_ = now;
        const auto next = directory_ / "next";
        std::ofstream{next} << '@' << now.count();
        std::filesystem::rename(next, directory_ / "clock");
    }
    void pass(RedisModel::Time span) { set_clock(now_ + span); }

    /// Lets both reach maxmemory.
    void run_out_of_memory() {
        EXPECT_EQ(connection_.ask({"CONFIG", "SET", "maxmemory", "1"}), "OK");
        model_.run_out_of_memory();
    }

    /// Gives both a subscriber of `channel`.
    void subscribe(const std::string& channel) {
        listener_.ask({"SUBSCRIBE", channel});
        model_.on_publish([this, channel](auto theirs, auto message) -> std::size_t {
            if (theirs != channel) return 0;
            heard_.emplace_back(message);
            return 1;
        });
    }

    /// Checks that both subscribers have received the same messages.
    testing::AssertionResult agree_about_messages() {
        for (const auto& message : heard_)
            if (const auto real = listener_.read_reply().elements.at(2).text; real != message)
                return testing::AssertionFailure() << "received " << real << ", the model " << message;
        heard_.clear();
        return testing::AssertionSuccess();
    }

    /// Executes the command on both. Returns a failure with the last commands if the replies differ.
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

    /// The same for the value and the expiry of each key.
    testing::AssertionResult agree_about(const Words& keys) {
        for (const auto& key : keys)
            for (const auto* const command : {"GET", "PTTL"})
                if (auto result = agree({command, key}); !result) return result;
        return testing::AssertionSuccess();
    }

private:
    /// Compares only the first word of errors, because the rest differs between servers.
    static bool alike(const RedisReply& a, const RedisReply& b) {
        const auto first_word = [](const RedisReply& it) { return it.text.substr(0, it.text.find(' ')); };
        return a.is_error() && b.is_error() ? first_word(a) == first_word(b) : a == b || same_numbers(a, b);
    }

    /// Servers differ in the size from which they print a score with an exponent.
    static bool same_numbers(const RedisReply& a, const RedisReply& b) {
        const auto number = [](const RedisReply& it) { return std::strtod(it.text.c_str(), nullptr); };
        const auto same = [&](const RedisReply& x, const RedisReply& y) {
            return x == y || (x.kind == y.kind && number(x) != 0 && number(x) == number(y));
        };
        return a.kind == RedisReply::Kind::array && std::ranges::equal(a.elements, b.elements, same);
    }

    static std::string shown(const Words& words) {
        std::string line;
        for (std::string word : words) {
            for (const auto* const script : detail::scripts::all)
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
    RedisModel model_{server_.info("server", "run_id"), server_.info("replication", "master_replid")};
    Words heard_{};  // by the subscriber of the model
    std::deque<std::string> log_{};
};

std::vector<std::uint64_t> seeds() {
    if (const char* const seed = std::getenv("REDLOCK_SEED")) return {std::strtoull(seed, nullptr, 10)};
    return {1, 2, 3, 4, 5, 6};
}

class RedisModelLikeRedis : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seed, RedisModelLikeRedis, testing::ValuesIn(seeds()),
                         testing::PrintToStringParamName());

TEST_P(RedisModelLikeRedis, RepliesLikeRedisToRandomCommandsAndScripts) {
    Both both;
    both.subscribe("redlock:wake:alive");
    ASSERT_TRUE(both.agree({"FLUSHALL"}));
    for (const auto* const script : detail::scripts::all)
        ASSERT_TRUE(both.agree({"SCRIPT", "LOAD", std::string{script->text}}));
    RandomCommands random{GetParam(), both.data()};
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
        for (int i = 0; i < 12; ++i) ASSERT_TRUE(both.agree({"ZPOPMIN", queue})) << "the rest of the queue";
}

// What scripts may return, and what they must not do.
TEST(RedisModelLikeRedis, RunsLuaLikeRedis) {
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

// A script may use more memory after its first write, whether or not that write has changed anything.
TEST(RedisModelLikeRedis, RunsOutOfMemoryLikeRedis) {
    Both both;
    ASSERT_TRUE(both.agree({"SET", "key", "x"}));
    both.run_out_of_memory();
    const std::initializer_list<Words> commands{
        {"SET", "a", "b"},         {"SET", "a"},           {"RPUSH", "list", "a"}, {"ZADD", "set", "1", "m"},
        {"PEXPIRE", "key", "500"}, {"GET", "key"},         {"ZREM", "set", "m"},   {"ZPOPMIN", "set"},
        {"PUBLISH", "a", "b"},     {"DEL", "key", "none"}, {"SET", "a", "b"}};
    for (const auto& words : commands) EXPECT_TRUE(both.agree(words)) << testing::PrintToString(words);
    for (const std::string first :
         {"'get','a'", "'time'", "'publish','a','b'", "'set','a','b'", "'zadd','a','1','m'", "'del','none'",
          "'pexpire','none','1'", "'pexpireat','none','1'", "'zrem','none','m'", "'zpopmin','none'",
          "'zremrangebyscore','none','0','1'", "'flushall'"})
        EXPECT_TRUE(both.agree({"EVAL", "redis.pcall(" + first + ") return redis.call('set','a','b')", "0"}))
            << first;
}

// Errors that are found before a command is executed.
TEST(RedisModelLikeRedis, RejectsInvalidCommandsLikeRedis) {
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
}  // namespace redlock::test::redis_model_live_test

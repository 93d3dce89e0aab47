// What the bytes of a server mean as a vote (rules A7, D6, D7), and which of its words a report shows.
#include "wire/reply.hpp"
#include "redis/reply_parser.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::detail::reply_test {
namespace {

using namespace std::chrono_literals;
using Held = QueuePlace::Held;

/// What is asked: a verb, in the forms whose replies are read alike.
struct Question {
    const char* name;
    Command command;
    bool scripted = true;
};

const QueueTerms queue{};

// In the order of the columns of the table below.
const std::array questions{
    Question{"SET", {.verb = Verb::set_if_absent}, false},
    Question{"acquire", {.verb = Verb::set_if_absent}},
    Question{"extend", {.verb = Verb::compare_and_expire}},
    Question{"delete", {.verb = Verb::compare_and_delete}},
    Question{"wake", {.verb = Verb::compare_and_delete, .queue = &queue}},
    Question{"count", {.verb = Verb::set_and_count}},
    Question{"raise", {.verb = Verb::raise_count}},
    Question{"enter", {.verb = Verb::enter_queue, .queue = &queue}},
    Question{"describe", {.verb = Verb::describe_holder}},
    Question{"query", {.verb = Verb::query}},
};

/// The vote that `bytes` are on `question`. What is not the protocol of Redis breaks the connection, and the
/// vote is unknown for the same reason.
NodeVote vote_of(const Question& question, std::string_view bytes) {
    Reply reply;
    ReplyParser parser{reply};
    EXPECT_TRUE(parser.feed(bytes));
    const auto progress = parser.next();
    EXPECT_NE(progress, ReplyParser::Progress::incomplete);
    if (progress == ReplyParser::Progress::protocol_error) return {Vote::unknown, Errc::unexpected_reply};
    return to_vote(question.command, reply, question.scripted);
}

/// A cell of the table: "yes" and "no" are votes, with a number behind them if there is a count; "young" is a
/// node in quarantine; "?" is a reply that is no answer.
std::string cell_of(const NodeVote& vote) {
    if (vote.vote == Vote::unknown && vote.cause == Errc::quarantined) return "young";
    if (vote.vote == Vote::unknown) return vote.cause == Errc::unexpected_reply ? "?" : vote.cause.message();
    EXPECT_FALSE(vote.cause);
    const std::string count = vote.count > 0 ? std::to_string(vote.count) : "";
    return (vote.vote == Vote::granted ? "yes" : "no") + count;
}

struct Row {
    std::string bytes;
    const char* cells;
};

// clang-format off
const std::vector<Row> table{
    // reply                                        SET  acquire extend delete wake  count raise enter describe query
    {"+OK\r\n",                                     "yes  ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+ok\r\n",                                     "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+OK \r\n",                                    "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+OKAY\r\n",                                   "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+QUEUED\r\n",                                 "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+1\r\n",                                      "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+\r\n",                                       "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+RESERVED\r\n",                               "?    ?       ?      ?      ?     ?     ?     yes   ?        ?"},
    {"+RESERVED \r\n",                              "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+RESERVED 1\r\n",                             "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"+WAITING 1200 3 holder\r\n",                  "?    ?       ?      ?      ?     ?     ?     no    ?        ?"},
    {"+QUARANTINED for another 5 ms\r\n",           "?    young   young  young  young young young young young    young"},
    {"+QUARANTINED\r\n",                            "?    young   young  young  young young young young young    young"},
    {"+QUARANTINEDLY\r\n",                          "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {":1\r\n",                                      "?    yes     yes    yes    yes   yes1  yes   ?     yes      ?"},
    {":0\r\n",                                      "?    no      no     no     no    no    no    ?     no       ?"},
    {":2\r\n",                                      "?    ?       ?      ?      no1   yes2  ?     ?     ?        ?"},
    {":3\r\n",                                      "?    ?       ?      ?      yes1  yes3  ?     ?     ?        ?"},
    {":4\r\n",                                      "?    ?       ?      ?      ?     yes4  ?     ?     ?        ?"},
    {":4294967296\r\n",                             "?    ?       ?      ?      ?     yes4294967296 ? ?     ?        ?"},
    {":4294967297\r\n",                             "?    ?       ?      ?      ?     yes4294967297 ? ?     ?        ?"},
    {":9223372036854775807\r\n",                    "?    ?       ?      ?      ?     yes9223372036854775807 ? ? ?   ?"},
    {":-1\r\n",                                     "?    ?       ?      ?      ?     ?     no1   ?     ?        ?"},
    {":-2\r\n",                                     "?    ?       ?      ?      ?     ?     no2   ?     ?        ?"},
    {":-4294967295\r\n",                            "?    ?       ?      ?      ?     ?     no4294967295 ? ?        ?"},
    {":-9223372036854775808\r\n",                   "?    ?       ?      ?      ?     ?     no9223372036854775808 ? ? ?"},
    {":9223372036854775808\r\n",                    "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {":-9223372036854775809\r\n",                   "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"$-1\r\n",                                     "no   ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"*-1\r\n",                                     "no   ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"$0\r\n\r\n",                                  "?    ?       ?      ?      ?     ?     ?     ?     ?        yes"},
    {"$1\r\n1\r\n",                                 "?    ?       ?      ?      ?     ?     ?     ?     ?        yes"},
    {"$2\r\nOK\r\n",                                "?    ?       ?      ?      ?     ?     ?     ?     ?        yes"},
    {"$8\r\nRESERVED\r\n",                          "?    ?       ?      ?      ?     ?     ?     ?     ?        yes"},
    {"$21\r\nWAITING 1200 3 holder\r\n",            "?    ?       ?      ?      ?     ?     ?     ?     ?        yes"},
    {"$11\r\nQUARANTINED\r\n",                      "?    ?       ?      ?      ?     ?     ?     ?     ?        yes"},
    {"*0\r\n",                                      "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"*1\r\n:1\r\n",                                "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"*1\r\n+OK\r\n",                               "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"*2\r\n:1\r\n$-1\r\n",                         "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"*1\r\n*1\r\n:1\r\n",                          "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"*1000000000\r\n",                             "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"#t\r\n",                                      "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {",1.5\r\n",                                    "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
    {"HTTP/1.1 400 Bad Request\r\n",                "?    ?       ?      ?      ?     ?     ?     ?     ?        ?"},
};
// clang-format on

TEST(ToVote, ReturnsTheVoteOfTheTable) {
    for (const auto& [bytes, cells] : table) {
        SCOPED_TRACE(bytes);
        std::istringstream expected{cells};
        for (const auto& question : questions) {
            std::string cell;
            expected >> cell;
            EXPECT_EQ(cell_of(vote_of(question, bytes)), cell) << question.name;
        }
    }
}

// A list is read for the answers of Sentinels, and nothing else.
TEST(ToVote, ReturnsAnUnknownVoteForAListAndForNoReply) {
    for (const auto& question : questions)
        for (const auto kind : {Reply::Kind::list, Reply::Kind::none})
            EXPECT_EQ(cell_of(to_vote(question.command, {.kind = kind, .text = "OK"}, question.scripted)),
                      "?")
                << question.name;
}

// ---- Errors. An error is no refusal, because it does not say who holds the resource. There is one
// exception.

TEST(ToVote, ReturnsAnUnknownVoteWithTheCauseOfAnError) {
    const std::vector<std::pair<const char*, Errc>> errors{
        {"NOAUTH Authentication required.", Errc::authentication_failed},
        {"NOAUTH", Errc::authentication_failed},
        {"WRONGPASS invalid username-password pair", Errc::authentication_failed},
        {"NOPERM this user has no permissions to run the 'set' command", Errc::permission_denied},
        {"ERR ACL failure in script: User u has no permissions to run the 'set' command",
         Errc::permission_denied},
        {"ERR The user executing the script can't run this command or subcommand", Errc::permission_denied},
        {"READONLY You can't write against a read only replica.", Errc::read_only},
        {"READONLY its INFO does not say role:master, run_id and master_replid", Errc::read_only},
        {"LOADING Redis is loading the dataset in memory", Errc::loading},
        {"OOM command not allowed when used memory > 'maxmemory'.", Errc::out_of_memory},
        {"WRONGTYPE redlock:since holds no marker", Errc::wrong_type},
        {"BUSY Redis is busy running a script.", Errc::server_busy},
        {"TRYAGAIN Multiple keys request during rehashing of slot", Errc::server_busy},
        {"MASTERDOWN Link with MASTER is down", Errc::server_busy},
        {"CLUSTERDOWN The cluster is down", Errc::server_busy},
        {"MISCONF Redis is configured to save RDB snapshots", Errc::server_busy},
        {"NOREPLICAS Not enough good replicas to write.", Errc::server_busy},
        {"ERR max number of clients reached", Errc::connection_failed},
        {"DENIED Redis is running in protected mode because no password is set", Errc::connection_failed},
        {"ERR max number of clients + cluster connections reached", Errc::connection_failed},
        {"NOSCRIPT No matching script. Please use EVAL.", Errc::unknown_error},
        {"MOVED 42 10.0.0.1:6379", Errc::server_error},
        {"ASK 42 10.0.0.1:6379", Errc::server_error},
        {"CROSSSLOT Keys in request don't hash to the same slot", Errc::server_error},
        {"REDIRECT 10.0.0.1:6379", Errc::server_error},
        {"ERR unknown command 'SET'", Errc::server_error},
        {"ERR unknown command `SET`, with args beginning with: `a`, `b`", Errc::server_error},
        {"ERR unknown subcommand 'GET'. Try CONFIG HELP.", Errc::server_error},
        {"ERR wrong number of arguments for 'set' command", Errc::server_error},
        {"ERR syntax error", Errc::server_error},
        {"ERR DB index is out of range", Errc::server_error},
        {"ERR invalid DB index", Errc::server_error},
        {"ERR SELECT is not allowed in cluster mode", Errc::server_error},
        {"ERR Unknown Redis command called from script script: 4711, on @user_script:1.", Errc::server_error},
        {"ERR Error running script (call to f_4711): @user_script:1: @user_script: 1: Unknown Redis command "
         "called from Lua script",
         Errc::server_error},
        {"ERR This Redis command is not allowed from script script: 4711", Errc::server_error},
        // Servers before Redis 7, in scripts.
        {"ERR Error running script (call to f_4711): @user_script:1: @user_script: 1: -READONLY You can't "
         "write against a read only replica. ",
         Errc::read_only},
        {"ERR Error running script (call to f_4711): @user_script:12: @user_script: 12: -OOM command not "
         "allowed when used memory > 'maxmemory'. ",
         Errc::out_of_memory},
        {"ERR Error running script (call to f_4711): @user_script:3: -NOREPLICAS Not enough good replicas to "
         "write.",
         Errc::server_busy},
        {"ERR Error running script (call to f_4711): OOM is not behind its place", Errc::unknown_error},
        {"ERR Error running script (call to f_4711): @user_script:", Errc::unknown_error},
        // A server that is no Redis Cluster, and a service that restricts Lua.
        {"ERR This instance has cluster support disabled", Errc::server_error},
        {"ERR bad lua script for redis cluster, all the keys that the script uses should be passed using the "
         "KEYS array, and KEYS should not be in expression",
         Errc::server_error},
        {"ERR invalid password", Errc::authentication_failed},
        {"ERR Client sent AUTH, but no password is set", Errc::authentication_failed},
        {"ERR AUTH <password> called without any password configured for the default user.",
         Errc::authentication_failed},
        // Proxies whose server is down.
        {"ERR Connection refused", Errc::unknown_error},
        {"ERR", Errc::unknown_error},
        {"ERR ", Errc::unknown_error},
        {"ERR the server said: unknown command", Errc::unknown_error},
        {"unknown command 'SET'", Errc::unknown_error},
        {"no upstream host", Errc::unknown_error},
        {"upstream failure", Errc::unknown_error},
        {"ERR OOM is not the first word", Errc::unknown_error},
        {"ERR unknown command 'max number of clients reached'", Errc::server_error},
        {"QUARANTINED for another 5 ms", Errc::unknown_error},
        {"RESERVED", Errc::unknown_error},
        {"WAITING 1200 3 holder", Errc::unknown_error},
        {"OK", Errc::unknown_error},
        {"LOADINGS are not LOADING", Errc::unknown_error},
        {"BUSYKEY Target key name already exists.", Errc::unknown_error},
        {"noauth in small letters", Errc::unknown_error},
        {" NOAUTH behind a blank", Errc::unknown_error},
        {"", Errc::unknown_error},
    };
    for (const auto& [words, cause] : errors)
        for (const auto& question : questions) {
            const auto vote = vote_of(question, "-" + std::string{words} + "\r\n");
            EXPECT_EQ(vote.vote, Vote::unknown) << words;
            EXPECT_EQ(vote.cause, cause) << words << ", to " << question.name << ": " << vote.cause.message();
        }
}

// A key of another type is not ours, so that there is nothing to extend or release.
TEST(ToVote, ReturnsARefusalIfTheKeyToExtendOrReleaseHasAnotherType) {
    for (const std::string words : {"WRONGTYPE Operation against a key holding the wrong kind of value",
                                    "WRONGTYPE orders holds no lock",
                                    "ERR Error running script (call to f_4711): @user_script:1: WRONGTYPE "
                                    "Operation against a key holding the wrong kind of value"})
        for (const auto& question : questions) {
            const auto vote = vote_of(question, "-" + words + "\r\n");
            const std::string_view name = question.name;
            const bool needs_our_key = name == "extend" || name == "delete" || name == "wake";
            EXPECT_EQ(vote.vote, needs_our_key ? Vote::refused : Vote::unknown) << words << ", to " << name;
            EXPECT_EQ(vote.cause, Errc::wrong_type) << words << ", to " << name;
        }
}

// The key of the owner can be in order.
TEST(ToVote, IsUnknownIfAReaderKeyHasAForeignMember) {
    for (const auto& question : questions) {
        const auto vote = vote_of(question, "-WRONGTYPE {x}:readers holds no readers\r\n");
        EXPECT_EQ(vote.vote, Vote::unknown) << question.name;
        EXPECT_EQ(vote.cause, Errc::wrong_type) << question.name;
    }
}

// ---- Places in the queue

NodeVote vote_of_waiter(std::string_view status) {
    const Question enter{"enter", {.verb = Verb::enter_queue, .queue = &queue}};
    return vote_of(enter, "+" + std::string{status} + "\r\n");
}

constexpr std::chrono::milliseconds century = 876'600h;
static_assert(Clock::time_point{century} + century > Clock::time_point{century},
              "a clock can read the end of it");

TEST(ToVote, ReturnsThePlaceOfAWaiter) {
    struct PlaceRow {
        const char* status;
        std::chrono::milliseconds held_for;
        std::size_t in_front;
        Held held;
    };
    const std::vector<PlaceRow> places{
        {"WAITING 1200 3 holder", 1200ms, 3, Held::by_holder},
        {"WAITING 100 0 reservation", 100ms, 0, Held::by_waiter},
        {"WAITING -2 0 nothing", -2ms, 0, Held::by_nobody},
        {"WAITING -1 12 holder", -1ms, 12, Held::by_holder},
        {"WAITING 0 1000000 nothing", 0ms, 1'000'000, Held::by_nobody},
        // A number that is too large for its type is the limit, and not a small one.
        {"WAITING 3155760000000 0 holder", century, 0, Held::by_holder},
        {"WAITING 3155760000001 0 holder", century, 0, Held::by_holder},
        {"WAITING 31536000000000 0 holder", century, 0, Held::by_holder},
        {"WAITING 9223372036854775807 0 holder", century, 0, Held::by_holder},
        {"WAITING 9223372036854775808 0 holder", century, 0, Held::by_holder},
        {"WAITING 99999999999999999999 0 holder", century, 0, Held::by_holder},
        {"WAITING -3 0 holder", -2ms, 0, Held::by_holder},
        {"WAITING -9223372036854775808 0 holder", -2ms, 0, Held::by_holder},
        {"WAITING -99999999999999999999 0 holder", -2ms, 0, Held::by_holder},
    };
    for (const auto& [status, held_for, in_front, held] : places) {
        SCOPED_TRACE(status);
        const auto vote = vote_of_waiter(status);
        EXPECT_EQ(vote.vote, Vote::refused);
        EXPECT_EQ(vote.place.held_for, held_for);
        EXPECT_EQ(vote.place.in_front, in_front);
        EXPECT_EQ(vote.place.held, held);
    }
    EXPECT_GT(vote_of_waiter("WAITING 1 99999999999999999999 holder").place.in_front, 1'000'000'000U);
}

TEST(ToVote, ReturnsAnUnknownVoteForAnIncompletePlace) {
    for (const auto* const status : {"WAITING",
                                     "WAITING ",
                                     "WAITING 1200",
                                     "WAITING 1200 ",
                                     "WAITING 1200 3",
                                     "WAITING 1200 3 ",
                                     "WAITING holder",
                                     "WAITING 3 holder",
                                     "WAITING  3 holder",
                                     "WAITING 1200  holder",
                                     "WAITING   holder",
                                     "WAITING 1200 3 Holder",
                                     "WAITING 1200 3 holder ",
                                     "WAITING 1200 3  holder",
                                     "WAITING 1200 3 holder 4",
                                     "WAITING 1200 3 other",
                                     "WAITING  1200 3 holder",
                                     "WAITING 1200 -3 holder",
                                     "WAITING 1.5 3 holder",
                                     "WAITING 1200 3.5 holder",
                                     "WAITING 0x10 3 holder",
                                     "WAITING x 3 holder",
                                     "WAITING 1200 x holder",
                                     "WAITING1200 3 holder",
                                     "waiting 1200 3 holder",
                                     " WAITING 1200 3 holder",
                                     "AWAITING 1200 3 holder"})
        EXPECT_EQ(cell_of(vote_of_waiter(status)), "?") << status;
}

// ---- Lists, which Sentinels answer with

TEST(ReplyParser, ParsesFlatListsIfTheyAreAllowed) {
    const auto list_of = [](std::string_view bytes) {
        Reply reply;
        ReplyParser parser{reply};
        parser.admit_lists();
        EXPECT_TRUE(parser.feed(bytes));
        return parser.next() == ReplyParser::Progress::complete && reply.kind == Reply::Kind::list
                   ? reply.text
                   : "none";
    };
    EXPECT_EQ(list_of("*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n"), "127.0.0.1\n6379");
    EXPECT_EQ(list_of("*3\r\n+a\r\n:-7\r\n$-1\r\n"), "a\n-7\n");
    EXPECT_EQ(list_of("*0\r\n"), "");
    EXPECT_EQ(list_of("*-1\r\n"), "none") << "it is nil";
    EXPECT_EQ(list_of("*1\r\n*1\r\n:1\r\n"), "none");
    EXPECT_EQ(list_of("*2\r\n:1\r\n*0\r\n"), "none");
    EXPECT_EQ(list_of("*2\r\n:1\r\n"), "none") << "an element is missing";
    std::string sixteen;
    for (int i = 0; i < 16; ++i) sixteen += ":1\r\n";
    EXPECT_EQ(list_of("*16\r\n" + sixteen).size(), 31U);
    EXPECT_EQ(list_of("*17\r\n" + sixteen + ":1\r\n"), "none");
}

// ---- Words

// Not even a sign.
TEST(WholeNumber, HasDigitsOnly) {
    EXPECT_EQ(whole_number<std::uint64_t>("0"), 0U);
    EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
    for (const auto* const text : {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "18446744073709551616"})
        EXPECT_FALSE(whole_number<std::uint64_t>(text)) << text;
}

TEST(WholeNumber, HasALimit) {
    EXPECT_EQ(whole_number<std::uint16_t>("65535"), 65'535U);
    EXPECT_FALSE(whole_number<std::uint16_t>("65536"));
    EXPECT_EQ(whole_number<std::uint16_t>("7", 7), 7U);
    EXPECT_FALSE(whole_number<std::uint16_t>("8", 7));
}

TEST(LineOfInfo, IsFoundByItsName) {
    const std::string info = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nrole:master";
    EXPECT_EQ(line_of_info(info, "run_id:"), "abc");
    EXPECT_EQ(line_of_info(info, "role:"), "master");
    EXPECT_EQ(line_of_info(info, "uptime:"), "");
    EXPECT_EQ(line_of_info("", "run_id:"), "");
}

// A server chooses parts of its INFO itself, the names of files among them.
TEST(LineOfInfo, IsAWholeLine) {
    const std::string info = "config_file:/role:master\r\nos:run_id:fake\r\nrole:slave\r\nrun_id:abc\r\n";
    EXPECT_EQ(line_of_info(info, "role:"), "slave");
    EXPECT_EQ(line_of_info(info, "run_id:"), "abc");
    EXPECT_EQ(line_of_info(info, "id:"), "");
}

TEST(PrintableWords, AreASingleShortLine) {
    EXPECT_EQ(printable("ERR two\r\nlines \x1B[31m\xC3\xA9"), "ERR two??lines ?[31m??");
    EXPECT_EQ(printable("a space ~ and\x7F"), "a space ~ and?") << "the last character is DEL";
    EXPECT_EQ(printable(std::string(120, 'x')), std::string(120, 'x'));
    EXPECT_EQ(printable(std::string(121, 'x')), std::string(120, 'x') + "...");
}

// ---- The words of a server that a report may show

TEST(ShownAfterAuth, NeverHasARunInCommonWithThePassword) {
    constexpr std::string_view old = "ERR Client sent AUTH, but no password is set";
    EXPECT_EQ(shown_after_auth(old, "s3cret"), old);
    EXPECT_EQ(shown_after_auth("ERR no user s3cret", "s3cret"), "ERR");
    EXPECT_EQ(shown_after_auth("ERR no user CRE", "s3cret"), "ERR") << "a part, in other letters";
    EXPECT_EQ(shown_after_auth("ERR no user", "us"), "ERR") << "a short password";
    EXPECT_EQ(shown_after_auth("ERR no user", ""), "ERR no user") << "nothing is secret";
}

// What every server says tells nothing about the password.
TEST(ShownAfterAuth, HasKnownWordsWhateverThePasswordIs) {
    for (const auto* const password : {"password", "configured", "AUTH", "x"})
        EXPECT_EQ(
            shown_after_auth("ERR AUTH <password> called without any password configured for x", password),
            "ERR AUTH <password> called without any password configured");
}

}  // namespace
}  // namespace redlock::detail::reply_test

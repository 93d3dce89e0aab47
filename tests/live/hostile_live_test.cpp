// Rules A3, A7, D1, D2 and E against servers that answer nonsense, too much, too slowly or never: the harm
// stays with the node, and is reported there.
#include "bystander.hpp"
#include "hostile_server.hpp"
#include "live_world.hpp"

#include <filesystem>
#include <memory>
#include <optional>

namespace redlock::test {
namespace {

struct Hostility {
    std::string name;
    Errc cause;                  ///< as acquire reports it
    HostileServer::Manners act;  ///< on a connection, from the start or when it was greeted
};
void PrintTo(const Hostility& hostility, std::ostream* out) {
    *out << hostility.name;
}

/// Answers every command with the same words.
HostileServer::Manners answering(std::string words) {
    return [words = std::move(words)](Guest& guest) {
        for (;;) {
            (void)guest.hear();
            guest.say(words);
        }
    };
}

/// Answers the first command with these words, and nothing any more.
HostileServer::Manners answering_once(std::string words) {
    return [words = std::move(words)](Guest& guest) {
        (void)guest.hear();
        guest.say(words);
        guest.linger();
    };
}

HostileServer::Manners streaming(std::string start, char byte) {
    return [start = std::move(start), block = std::string(65'536, byte)](Guest& guest) {
        (void)guest.hear();
        guest.say(start);
        for (;;) guest.say(block);
    };
}

const std::vector<Hostility> hostilities{
    {"Http", Errc::unexpected_reply, answering("HTTP/1.1 400 Bad Request\r\n\r\n")},
    {"Garbage", Errc::unexpected_reply, answering(std::string("\0\xFF\x7F\r\n\r\n\0", 8))},
    {"AnEmptyLine", Errc::unexpected_reply, answering("\r\n")},
    {"AnotherStatus", Errc::unexpected_reply, answering("+QUEUED\r\n")},
    {"AnInteger", Errc::unexpected_reply, answering(":1\r\n")},
    {"AString", Errc::unexpected_reply, answering("$2\r\nOK\r\n")},
    {"AnArray", Errc::unexpected_reply, answering("*1\r\n+OK\r\n")},
    {"ANestedArray", Errc::unexpected_reply,
     answering("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n")},
    {"AHugeArray", Errc::unexpected_reply, answering_once("*1000000000\r\n")},
    {"AHugerArray", Errc::unexpected_reply, answering_once("*9223372036854775807\r\n")},
    {"ANegativeArray", Errc::unexpected_reply, answering_once("*-2\r\n")},
    {"AHugeString", Errc::timed_out, answering_once("$9999999999\r\n")},
    {"ANegativeString", Errc::unexpected_reply, answering_once("$-2\r\n")},
    {"AStringOfNoLength", Errc::unexpected_reply, answering_once("$x\r\n")},
    {"AnError", Errc::server_error, answering("-ERR no\r\n")},
    {"AnEmptyError", Errc::server_error, answering("-\r\n")},
    {"ALongError", Errc::server_error, answering("-ERR " + std::string(20'000, 'x') + "\r\n")},
    {"HalfAReply", Errc::timed_out, answering_once("+O")},
    {"Nothing", Errc::timed_out, [](Guest& guest) { guest.linger(); }},
    {"AnEndlessString", Errc::unexpected_reply, streaming("$9999999999\r\n", 'x')},
    {"AnEndlessLine", Errc::unexpected_reply, streaming("+", 'x')},
    {"AnEndlessError", Errc::unexpected_reply, streaming("-", '-')},
    {"EndlessNewlines", Errc::unexpected_reply, streaming("", '\n')},
    {"ATrickle", Errc::timed_out,
     [](Guest& guest) { guest.trickle("$1000\r\n" + std::string(1'000, 'x'), 5ms); }},
    {"AClosedDoor", Errc::connection_failed, [](Guest&) {}},
    {"AHangUpAfterAByte", Errc::connection_failed, [](Guest& guest) { guest.hear_byte(); }},
    {"AByteAndAHangUp", Errc::connection_failed,
     [](Guest& guest) {
         (void)guest.hear();
         guest.say("+");
     }},
    {"AReset", Errc::connection_failed,
     [](Guest& guest) {
         guest.hear_byte();
         guest.reset();
     }},
};

/// Where the hostility begins: with the first byte, or when the client feels at home.
enum class Beginning : bool { at_once, after_the_greeting };

void PrintTo(Beginning beginning, std::ostream* out) {
    *out << (beginning == Beginning::at_once ? "at once" : "after the greeting");
}

HostileServer::Manners manners(const Hostility& hostility, Beginning beginning) {
    if (beginning == Beginning::at_once) return hostility.act;
    return [act = hostility.act](Guest& guest) {
        (void)guest.hear();
        guest.say("+PONG\r\n");
        act(guest);
    };
}

/// How long the servers could have run and were not given a processor.
Clock::duration processor_waits(Cluster& servers) {
    Clock::duration waited{};
    for (auto& server : servers) {
        (void)server.command({"PING"});  // a wait is counted when it is over
        waited += processor_wait(server.pid());
    }
    return waited;
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct WithOneHostileNode : testing::TestWithParam<std::tuple<Hostility, Beginning, Round>> {
    const Hostility& hostility = std::get<0>(GetParam());
    const Beginning beginning = std::get<1>(GetParam());
    const Round round = std::get<2>(GetParam());
};
constexpr auto by_all_three = [](const auto& info) {
    const auto& [hostility, beginning, round] = info.param;
    return hostility.name + (beginning == Beginning::at_once ? "First" : "Then") +
           (round == Round::sequential ? "InTurn" : "AtOnce");
};
INSTANTIATE_TEST_SUITE_P(Hostile, WithOneHostileNode,
                         testing::Combine(testing::ValuesIn(hostilities),
                                          testing::Values(Beginning::at_once, Beginning::after_the_greeting),
                                          testing::Values(Round::sequential, Round::all_at_once)),
                         by_all_three);

// A3, A12, E. As one of three: reported with its cause, the others unaffected, within its budget, for 200
// rounds with not a descriptor lost.
TEST_P(WithOneHostileNode, TheLockWorksAllTheSame) {
    constexpr auto budget = 500ms;
    const HostileServer hostile{manners(hostility, beginning)};
    Cluster servers{2};
    std::optional<RedisNodes> nodes;
    const auto two_rounds = [&] {
        Lock lock{*nodes, the_resource};
        const auto result = lock.acquire_for(10s);
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(count(result, Vote::granted), 2U);
        lock.unlock();
        return result;
    };
    Result first{Errc::lost};
    Clock::duration took{};
    // An honest server that the machine does not let run for a whole budget is as good as dead: once more.
    for (int repetition = 0; repetition < 20; ++repetition) {
        const auto before = processor_waits(servers);
        nodes.emplace(std::vector{hostile.uri(), servers[0].uri(), servers[1].uri()},
                      NodesOptions{.node_timeout = budget, .round = round});
        took = own_time([&] { first = two_rounds(); });
        if (processor_waits(servers) - before < budget / 2) break;
    }
    EXPECT_THAT(took, LastsAtMost(3 * budget)) << "acquire and release";
    const auto& report = first.nodes()[0];
    EXPECT_EQ(report.vote, Vote::unknown);
    if (round == Round::sequential) {
        // A greeting may be any status, but must be one; a SET is answered by OK alone.
        EXPECT_THAT(first, Reports(0, hostility.cause));
    }
    EXPECT_LE(report.detail.size(), 200U);

    for (int i = 0; i < 20; ++i) (void)two_rounds();
    const auto descriptors = open_descriptors();
    for (int i = 0; i < 100; ++i) (void)two_rounds();
    // A connection that may still answer is kept for a while (B5): 64 at most, of which both ends are ours
    // here.
    const auto kept = hostility.cause == Errc::timed_out ? 2U * 64U : 0U;
    EXPECT_TRUE(wait_until([&] { return open_descriptors() <= descriptors + kept + 5; }))
        << "descriptors leak";
    for (auto& server : servers) EXPECT_TRUE(wait_until([&] { return server.command({"DBSIZE"}) == "0"; }));
}

struct WithHostileNodesOnly : testing::TestWithParam<Hostility> {};
INSTANTIATE_TEST_SUITE_P(Hostile, WithHostileNodesOnly, testing::ValuesIn(hostilities), by_name);

// A3, A8. It fails in time, without an exception, and says why.
TEST_P(WithHostileNodesOnly, AcquireFailsInTime) {
    constexpr auto budget = 300ms;
    for (const auto beginning : {Beginning::at_once, Beginning::after_the_greeting}) {
        const HostileServer a{manners(GetParam(), beginning)}, b{manners(GetParam(), beginning)};
        RedisNodes nodes{{a.uri(), b.uri()}, {.node_timeout = budget}};
        Lock lock{nodes, the_resource};
        Result result{Errc::lost};
        EXPECT_THAT(own_time([&] { result = lock.acquire_for(400ms); }), LastsAtMost(400ms + 2 * budget));
        EXPECT_FALSE(result);
        EXPECT_EQ(count(result, Vote::unknown), 2U);
        if (GetParam().cause == Errc::server_error) {
            EXPECT_EQ(result.attempts(), 1) << "another attempt cannot end differently";
        }
    }
}

// ---- More than one reply, less than one packet, no reply at all.

/// Answers as a server would that has all keys but one.
std::string honest_reply(const std::vector<std::string>& words, std::string_view free) {
    if (words.at(0) == "PING") return "+PONG\r\n";
    if (words[0] == "SET") return words.at(1) == free ? "+OK\r\n" : "$-1\r\n";
    return words.at(3) == free ? ":1\r\n" : ":0\r\n";
}

/// Answers every command but the greeting twice: at once, or a little later.
class AnswersTwice : public HostileServer {
public:
    explicit AnswersTwice(bool at_once)
        : HostileServer([this, at_once](Guest& guest) {
              (void)guest.hear();
              for (guest.say("+PONG\r\n");;) {
                  const auto reply = honest_reply(guest.hear(), "A");
                  guest.say(at_once ? reply + reply : reply);
                  if (!at_once) {
                      std::this_thread::sleep_for(5ms);
                      guest.say(reply);
                  }
                  ++doubled;
              }
          }) {}

    std::atomic<int> doubled{0};
};

// D1. A server that answers every command twice: the second answer is nobody's, also when it came in between.
TEST(Hostile, ASecondReplyIsNotTakenForTheNextCommands) {
    for (const bool at_once : {true, false}) {
        AnswersTwice server{at_once};
        RedisNodes nodes{{server.uri()}, {.node_timeout = 2s}};
        for (int i = 0; i < 30; ++i) {
            Lock free{nodes, "A", no_retry()}, taken{nodes, "B", no_retry()};
            const auto doubled = server.doubled.load();
            EXPECT_FALSE(free.acquire() && at_once) << "it is not to be trusted in the first, either";
            ASSERT_TRUE(wait_until([&] { return server.doubled > doubled; }));
            EXPECT_FALSE(taken.acquire());
        }
    }
}

// D2. A reply in packets of one byte is as good as any, as long as it is complete within the budget.
TEST(Hostile, AReplyByteByByteIsAReply) {
    const HostileServer server{[](Guest& guest) {
        for (;;) guest.trickle(honest_reply(guest.hear(), "A"), 2ms);
    }};
    RedisNodes nodes{{server.uri()}, {.node_timeout = 2s}};
    Lock free{nodes, "A"}, taken{nodes, "B", no_retry()};
    EXPECT_THAT(free.acquire(), Succeeds());
    EXPECT_THAT(taken.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(free.extend(), Succeeds());
    EXPECT_THAT(free.release(), Succeeds());
}

/// Passes commands on to a real server, and hangs up where it should tell how SET went.
class LosesReplies : public HostileServer {
public:
    explicit LosesReplies(const RedisServer& server)
        : HostileServer([&server](Guest& guest) {
              auto connection = server.connect();
              for (;;) {
                  const auto words = guest.hear();
                  const auto reply = connection.ask(words);
                  if (words.at(0) == "SET") guest.reset();
                  guest.say((words[0] == "PING" ? "+" : ":") + reply + "\r\n");
              }
          }) {}
};

// A2, B1. The SET was executed, and the connection broke before that was told: the release reaches the node
// all the same, though it has just failed.
TEST(Hostile, ALostReplyLeavesNoKeyBehind) {
    for (const std::size_t losing : {1U, 2U, 3U}) {
        Cluster servers{3};
        std::deque<LosesReplies> relays;
        auto uris = servers.uris();
        for (std::size_t node = 0; node < losing; ++node)
            uris[node] = relays.emplace_back(servers[node]).uri();
        RedisNodes nodes{uris, {.node_timeout = 2s}};
        for (int i = 0; i < 3; ++i) {
            Lock lock{nodes, "resource " + std::to_string(i), no_retry()};
            EXPECT_EQ(static_cast<bool>(lock.acquire()), losing == 1);
            lock.unlock();
        }
        for (auto& server : servers) EXPECT_EQ(server.command({"DBSIZE"}), "0") << losing << " lose replies";
    }
}

// D11. A server that repeats what it was sent: the password does not come back in a report.
TEST(Hostile, AnEchoDoesNotTellThePassword) {
    const HostileServer server{[](Guest& guest) {
        for (;;) {
            std::string echo = "-ERR unknown command, with args beginning with:";
            for (const auto& word : guest.hear()) echo += " '" + word + "'";
            guest.say(echo + "\r\n");
        }
    }};
    RedisNodes nodes{{"redis://user:s3cret@" + server.name()}, {.node_timeout = 2s}};
    Lock lock{nodes, the_resource, no_retry()};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Reports(0, Errc::authentication_failed));
    EXPECT_THAT(result.message(), Not(HasSubstr("s3cret")));
    EXPECT_THAT(lock.acquire().message(), Not(HasSubstr("s3cret")));
}

// D11. Nor a part of it, where the server's words begin with one.
TEST(Hostile, AnErrorThatBeginsWithAPartOfThePasswordDoesNotTellIt) {
    const HostileServer server{[](Guest& guest) {
        for (;;) {
            (void)guest.hear();
            guest.say("-open sesame now\r\n");
        }
    }};
    RedisNodes nodes{{"redis://:open%20sesame@" + server.name()}, {.node_timeout = 2s}};
    Lock lock{nodes, the_resource, no_retry()};
    EXPECT_THAT(lock.acquire().message(), Not(HasSubstr("(open")));
}

}  // namespace
}  // namespace redlock::test

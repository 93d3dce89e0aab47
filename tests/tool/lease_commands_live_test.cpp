// redlock acquire, extend and release, as scripts use them.
#include "live/fake_redis_server.hpp"
#include "live/forked_child.hpp"
#include "tool_world.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <vector>

namespace redlock::test::lease_commands_live_test {
namespace {

using nlohmann::json;

class LeaseCommands : public testing::Test {
protected:
    /// The value of NAME=value in what was printed.
    static std::string value(const std::string& out, const std::string& name) {
        const auto at = out.find(name + "=");
        if (at == out.npos) return {};
        const auto begin = at + name.size() + 1;
        return out.substr(begin, out.find('\n', begin) - begin);
    }

    /// Returns the description of the holder.
    std::string note() { return world[0].command({"GET", "{job}:holder"}); }

    ToolWorld world{3};
};

TEST_F(LeaseCommands, AcquireALockThatOutlivesTheProcess) {
    const auto outcome = world.run({"acquire", "--ttl", "60s", "job"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto owner = value(outcome.out, "owner");
    for (auto& node : world) EXPECT_EQ(holder(node, "job"), owner);
    EXPECT_THAT(std::stoi(value(outcome.out, "validity_ms")),
                testing::AllOf(testing::Gt(50'000), testing::Lt(59'400)));
    EXPECT_EQ(value(outcome.out, "fencing_token"), "");
}

// Not themselves, which have ended by then, but the script that calls them.
TEST_F(LeaseCommands, DescribeTheCallingScriptAsTheHolder) {
    const auto says = [&](const std::string& end) {
        return wait_until([&] { return note().ends_with(end); });
    };
    const auto ours = " pid=" + std::to_string(::getpid()) + " program=tool_tests";
    const auto owner = value(world.run({"acquire", "--ttl", "60s", "job"}).out, "owner");
    EXPECT_TRUE(says(ours)) << note();
    EXPECT_TRUE(note().starts_with(owner + " host="));
    world[0].command({"DEL", "{job}:holder"});
    EXPECT_EQ(world.run({"extend", "--ttl", "1h", "--owner", owner, "job"}).status, 0);
    EXPECT_TRUE(says(ours)) << note();
    EXPECT_EQ(world.run({"release", "--owner", owner, "job"}).status, 0);
    EXPECT_TRUE(says("(nil)")) << note();
}

// The lock is still held. When a connection has gone, the server has executed all that came by it.
TEST_F(LeaseCommands, KeepTheHolderDescriptionIfTheReleaseFails) {
    const auto has_clients = [&] {
        return world[0].command({"CLIENT", "LIST"}).find("user=default") != std::string::npos;
    };
    const auto lease = world.run({"acquire", "--ttl", "1h", "--node-timeout", "2s", "job"}).out;
    ASSERT_TRUE(wait_until([&] { return note() != "(nil)"; }));
    const auto before = note();
    for (auto& node : world) node.command({"ACL", "SETUSER", "default", "-del"});
    const auto outcome = world.run({"release", "--owner", lease, "--node-timeout", "2s", "job"});
    EXPECT_EQ(outcome.status, 77) << outcome.err;
    EXPECT_TRUE(wait_until([&] { return !has_clients(); }));
    EXPECT_EQ(note(), before);
}

// Somebody else has deleted the key: the owner has no lock any more, and needs no description.
TEST_F(LeaseCommands, DeleteTheHolderDescriptionOfALostLock) {
    const auto lease = world.run({"acquire", "--ttl", "1h", "--node-timeout", "2s", "job"}).out;
    ASSERT_TRUE(wait_until([&] { return note() != "(nil)"; }));
    world.steal();
    EXPECT_EQ(world.run({"release", "--owner", lease, "--node-timeout", "2s", "job"}).status, 75);
    EXPECT_TRUE(wait_until([&] { return note() == "(nil)"; })) << note();
}

TEST_F(LeaseCommands, DescribeTheProcessOfWhilePidAsTheHolder) {
    ForkedChild script{[](auto) { ::pause(); }};
    const auto pid = std::to_string(script.pid());
    EXPECT_EQ(world.run({"acquire", "--ttl", "1s", "--while-pid", pid, "job"}).status, 0);
    const auto says_so = [&] { return note().find(" pid=" + pid + " program=") != std::string::npos; };
    EXPECT_TRUE(wait_until(says_so)) << note();
    world[0].command({"DEL", "{job}:holder"});
    EXPECT_TRUE(wait_until(says_so)) << "with the next extension";
}

TEST_F(LeaseCommands, LeaveNoHolderDescriptionOfAnEndedProcess) {
    ForkedChild script{[](auto) { ::pause(); }};
    const auto pid = std::to_string(script.pid());
    EXPECT_EQ(world.run({"acquire", "--ttl", "1h", "--while-pid", pid, "job"}).status, 0);
    EXPECT_TRUE(wait_until([&] { return note() != "(nil)"; }));
    script.kill();
    EXPECT_TRUE(wait_until([&] { return note() == "(nil)"; })) << note();
    EXPECT_EQ(world.keys(), 0U);
}

// lease=$(redlock acquire job); redlock extend --owner "$lease" job
TEST_F(LeaseCommands, AcceptTheOutputOfAcquireAndExtendAsTheOwner) {
    auto lease = world.run({"acquire", "--fencing", "job"}).out;
    lease.pop_back();  // as $(...) does
    EXPECT_GT(std::stoll(value(lease, "fencing_token")), 0);
    const auto extended = world.run({"extend", "--owner", lease, "job"});
    EXPECT_EQ(extended.status, 0) << extended.err;
    const auto released = world.run({"release", "--owner", extended.out, "job"});
    EXPECT_EQ(released.status, 0) << released.err;
    EXPECT_EQ(world.keys(), 0U);
    for (const auto* const wrong : {"owner=", "owner=abc", "owner\nvalidity_ms=3", "validity_ms=3"})
        EXPECT_EQ(world.run({"release", "--owner", wrong, "job"}).status, 64) << wrong;
}

// As README has it.
TEST_F(LeaseCommands, LeaveAVariableForTheLaterCommands) {
    for (const auto* const shell : {"sh", "bash"})
        for (const auto* const acquire : {R"_(eval "$($REDLOCK acquire --fencing --ttl 20s job)")_",
                                          R"_(lease=$($REDLOCK acquire --ttl 20s job) && eval "$lease")_"}) {
            const auto script = std::string{acquire} +
                                " && $REDLOCK extend --ttl 60s job >$DIR/extended && $REDLOCK release job";
            support::ChildProcess child{{{shell, "-c", script}, world.environment("REDLOCK=" REDLOCK_TOOL)}};
            EXPECT_TRUE(wait_until([&] { return !child.running(); }));
            EXPECT_EQ(child.wait(), 0) << shell << ": " << script;
            EXPECT_GT(std::stoi(value(world.in("extended"), "validity_ms")), 50'000);
            EXPECT_EQ(world.keys(), 0U);
        }
}

// lease=$(redlock acquire --json job); redlock extend --owner "$lease" job
TEST_F(LeaseCommands, AcceptTheJsonOfAcquireAndExtendAsTheOwner) {
    const auto lease = world.run({"acquire", "--json", "--fencing", "job"}).out;
    const auto extended = world.run({"extend", "--json", "--owner", lease, "job"});
    EXPECT_EQ(extended.status, 0) << extended.err;
    const auto released = world.run({"release", "--owner", extended.out, "job"});
    EXPECT_EQ(released.status, 0) << released.err;
    EXPECT_EQ(world.keys(), 0U);
    world.occupy();
    const auto refused = world.run({"acquire", "-n", "--json", "job"}).out;
    for (const std::string& wrong :
         {refused, std::string{"{"}, std::string{"{}"}, std::string{R"({"owner": 3})"}, "[" + lease + "]"}) {
        const auto outcome = world.run({"release", "--owner", wrong, "job"});
        EXPECT_EQ(outcome.status, 64) << wrong;
        EXPECT_THAT(outcome.err, HasSubstr("--owner must be the 40 hex digits")) << wrong;
    }
}

TEST_F(LeaseCommands, DoNotAcquireForAProcessThatDoesNotExist) {
    std::string gone;
    {
        ForkedChild script{[](auto) { ::pause(); }};
        gone = std::to_string(script.pid());
        script.kill();
    }
    const auto outcome = world.run({"acquire", "--while-pid", gone, "job"});
    EXPECT_EQ(outcome.status, 64);
    EXPECT_THAT(outcome.err, testing::HasSubstr("--while-pid: process " + gone + ": No such process"));
    EXPECT_EQ(world.keys(), 0U);
}

TEST_F(LeaseCommands, ExtendOnlyOnAMajority) {
    const auto owner = value(world.run({"acquire", "--ttl", "20s", "job"}).out, "owner");
    world[0].command({"DEL", "job"});
    EXPECT_EQ(world.run({"extend", "--owner", owner, "job"}).status, 0);
    world[1].command({"DEL", "job"});
    const auto outcome = world.run({"extend", "--owner", owner, "job"});
    EXPECT_EQ(outcome.status, 75);
    EXPECT_EQ(outcome.out, "");
}

/// Servers whose connections with one number, counted from 1, are black holes for scripts.
class ForgetfulServers {
public:
    explicit ForgetfulServers(int number) {
        for (std::size_t i = 0; i < connections_.size(); ++i)
            servers_.emplace_back([this, i, number](Session& session) {
                const bool replies = ++connections_[i] != number;
                for (;;) {
                    const auto words = session.receive_command();
                    if (words.front() == "PING") session.send("+PONG\r\n");
                    if (words.front() == "SET") session.send("+OK\r\n");
                    if (words.front() == "EVAL" && replies) session.send(":1\r\n");
                }
            });
    }
    std::vector<std::string> environment() const {
        return {"REDLOCK_NODES=" + support::comma_list(servers_, [](const auto& it) { return it.uri(); })};
    }
    /// Returns true if a majority has had so many connections.
    bool have_had(int connections) const {
        return std::ranges::count_if(connections_, [&](const auto& it) { return it >= connections; }) >= 2;
    }

private:
    std::array<std::atomic<int>, 3> connections_{};
    std::deque<FakeRedisServer> servers_{};
};

TEST_F(LeaseCommands, AreTriedAgainIfTooFewNodesReply) {
    const std::string owner(40, 'a');
    for (const std::string command : {"extend", "release"}) {
        const ForgetfulServers servers{1};
        Tool tool{{command, "--node-timeout", "2s", "--owner", owner, "job"}, servers.environment()};
        EXPECT_EQ(tool.wait().status, 0) << command << ": " << tool.err();
        EXPECT_TRUE(servers.have_had(2));
    }
    const ForgetfulServers servers{1};
    Tool run{{"run", "--node-timeout", "2s", "job", "true"}, servers.environment()};
    const auto outcome = run.wait();
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
}

// The keeper has connections of its own.
TEST_F(LeaseCommands, HaveAKeeperWhoseReleaseIsTriedAgain) {
    const ForgetfulServers servers{2};
    ForkedChild script{[](auto) { ::pause(); }};
    Tool tool{{"acquire", "--node-timeout", "2s", "--ttl", "1h", "--while-pid", std::to_string(script.pid()),
               "job"},
              servers.environment()};
    ASSERT_EQ(tool.wait().status, 0) << tool.err();
    script.kill();
    EXPECT_TRUE(wait_until([&] { return servers.have_had(3); }));
}

TEST_F(LeaseCommands, UseTheOwnerOfTheSurroundingRun) {
    const std::string redlock = REDLOCK_TOOL;
    const auto outcome = world.run(world.job(redlock + " extend --ttl 60s job >/dev/null && echo extended"));
    EXPECT_EQ(outcome.out, "extended\n") << outcome.err;
}

TEST_F(LeaseCommands, AskAllNodesAtOnceIfConfigured) {
    world[0].freeze();
    const auto took = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"acquire", "--node-timeout", "2s", "--json"});
        return json::parse(world.run(more).out)["nodes"][0]["took_ms"].get<double>();
    };
    EXPECT_GE(took({"one"}), 2000);  // a whole node_timeout, before the next is asked
    EXPECT_LT(took({"--all-at-once", "another"}), 2000);
}

TEST_F(LeaseCommands, DoNotCountNodesInQuarantine) {
    const auto outcome = world.run({"acquire", "-n", "--quarantine", "60s", "job"});
    EXPECT_EQ(outcome.status, 69);
    EXPECT_THAT(outcome.err, HasSubstr("quarantined"));
}

TEST_F(LeaseCommands, SubtractTheConfiguredDrift) {
    const auto lease = world.run({"acquire", "--ttl", "20s", "--drift-factor", "0.5", "job"}).out;
    const auto extended =
        world.run({"extend", "--owner", lease, "--ttl", "20s", "--drift-factor", "0.5", "job"}).out;
    for (const auto& out : {lease, extended})
        EXPECT_THAT(std::stoi(value(out, "validity_ms")),
                    testing::AllOf(testing::Gt(5000), testing::Lt(10'000)));
}

}  // namespace
}  // namespace redlock::test::lease_commands_live_test

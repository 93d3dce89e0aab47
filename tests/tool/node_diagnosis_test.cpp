// What a doctor makes of one node, by a table: change one thing about a healthy one, and that is found.
#include "facts.hpp"

#include <redlock/error.hpp>

#include <functional>

namespace redlock::tool::node_diagnosis_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Change = std::function<void(NodeFacts&)>;

Findings findings_after(const Change& change, const CheckupPlan& plan = {}) {
    auto node = healthy();
    change(node);
    return diagnose({&node, 1}, plan).nodes[0].findings;
}

struct Row {
    const char* what;
    Change change;
    std::vector<std::string> found;
};

void expect(const std::vector<Row>& table, const CheckupPlan& plan = {}) {
    for (const auto& [what, change, found] : table) {
        const auto findings = findings_after(change, plan);
        EXPECT_EQ(brief(findings), found) << what;
        for (const auto& it : findings) {
            EXPECT_FALSE(it.what.empty() || it.why.empty() || it.remedy.empty()) << what;
        }
    }
}

TEST(NodeDiagnosis, HasNoFindingForAHealthyNode) {
    expect({{"nothing", [](NodeFacts&) {}, {}}});
}

TEST(NodeDiagnosis, ChecksTheKindOfServer) {
    expect({
        {"no SET NX PX", [](auto& n) { n.info.redis_version = "2.6.11"; }, {"unsafe version"}},
        {"the first with it", [](auto& n) { n.info.redis_version = "2.6.12"; }, {"warning version"}},
        {"the last that is old", [](auto& n) { n.info.redis_version = "5.0.14"; }, {"warning version"}},
        {"6", [](auto& n) { n.info.redis_version = "6.0.0"; }, {}},
        {"no version told", [](auto& n) { n.info.redis_version = ""; }, {}},
        {"replica", [](auto& n) { n.info.role = "replica"; }, {"unsafe role"}},
        {"of KeyDB", [](auto& n) { n.info.role = "active-replica"; }, {"unsafe role"}},
        {"no role told", [](auto& n) { n.info.role = ""; }, {}},
        {"with replicas", [](auto& n) { n.info.replicas = 1; }, {"hint role"}},
        {"sentinel, which knows neither the commands of a lock nor TIME",
         [](auto& n) {
             n.info.mode = "sentinel";
             n.clock_error = {Errc::server_error, "ERR unknown command 'TIME'"};
             for (const auto* const command : {"EVAL", "SET"})
                 n.permission_checks.push_back(
                     {"acquire",
                      "orders:42",
                      "",
                      {Errc::server_error, "ERR unknown command '" + std::string{command} + "'"}});
         },
         {"unsafe mode"}},
        {"cluster", [](auto& n) { n.info.mode = "cluster"; }, {"warning mode"}},
    });
}

TEST(NodeDiagnosis, ChecksARedisCluster) {
    const auto cluster = [](const Change& change) {
        return [change](NodeFacts& n) {
            n.info.mode = "cluster";
            n.info.replicas = 1;
            n.cluster = ClusterFacts{.asked = "b:6379", .full_coverage = "no"};
            change(n);
        };
    };
    const std::string warning = "warning cluster";
    const std::string hint = "hint cluster";
    const std::vector<Row> table{
        {"well", cluster([](auto&) {}), {warning, hint}},
        {"its replica was asked", cluster([](auto& n) { n.info.role = "replica"; }), {warning, hint}},
        {"full coverage", cluster([](auto& n) { n.cluster->full_coverage = "yes"; }), {warning, hint, hint}},
        {"unknown", cluster([](auto& n) { n.cluster->full_coverage = ""; }), {warning, hint, hint}},
        {"lost slots", cluster([](auto& n) { n.cluster->unserved = 1; }), {warning, warning, hint}},
        {"a dead server",
         cluster([](auto& n) { n.cluster->unreachable = {"c:6379 (timed out)"}; }),
         {warning, warning, hint}},
        {"two that move slots",
         cluster([](auto& n) {
             n.cluster->moving = {"b:6379", "c:6379"};
         }),
         {warning, hint, hint, hint}},
        {"no list",
         cluster([](auto& n) {
             n.cluster->list_error = {Errc::permission_denied, "NOPERM"};
         }),
         {warning, warning, hint}},
    };
    expect(table);
    const auto last = [](const Row& row) { return findings_after(row.change).back(); };
    EXPECT_THAT(findings_after(table[0].change)[0].why, HasSubstr("after a failover"));
    EXPECT_THAT(findings_after(table[0].change)[1].what, HasSubstr("b:6379"));
    EXPECT_THAT(last(table[2]).why, HasSubstr("no resource can be locked at all"));
    EXPECT_THAT(last(table[3]).what, HasSubstr("unknown"));
    const auto second = [](const Row& row) { return findings_after(row.change)[1]; };
    EXPECT_THAT(second(table[4]).what, HasSubstr("1 of its slots"));
    EXPECT_THAT(second(table[5]).remedy, HasSubstr("cluster-announce-ip"));
    EXPECT_THAT(last(table[6]).what, HasSubstr("c:6379 is moving slots"));
    EXPECT_THAT(second(table[7]).remedy, HasSubstr("+cluster|nodes"));
    const auto forgetful = findings_after(cluster([](auto& n) { n.info.appendonly = false; }));
    EXPECT_EQ(brief(forgetful), (std::vector<std::string>{warning, "warning persistence", hint}));
    EXPECT_EQ(forgetful[1].remedy, "appendonly yes with appendfsync always");
    const auto remedies = [&](const char* words) {
        const auto findings = findings_after(cluster([&](auto& n) {
            n.cluster->list_error = {Errc::server_error, words};
            n.permission_checks.push_back({"release", "orders:42", "", {Errc::server_busy, words}});
        }));
        std::string all;
        for (const auto& it : findings) all += it.remedy + '\n';
        return all;
    };
    EXPECT_THAT(remedies("CLUSTERDOWN Hash slot not served"), Not(HasSubstr("cluster-enabled no")));
    EXPECT_THAT(
        remedies("ERR This instance has cluster support disabled; if no Redis Cluster answers at this "
                 "port, write redis://HOST:PORT"),
        HasSubstr("if no Redis Cluster answers"));
}

// A ttl of 30 s, replicas that are 10 s behind at most, and 6 s.
TEST(NodeDiagnosis, ChecksTheSafetyOfAFailover) {
    struct Failover {
        const char* what;
        Change change;
        std::chrono::milliseconds quarantine = 46s;
    };
    const auto expect_all = [](const std::vector<Failover>& table, const std::vector<std::string>& found) {
        for (const auto& [what, change, quarantine] : table) {
            const auto failover = [&change = change](NodeFacts& n) {
                n.info.replicas = 2;
                n.failover = {.min_replicas = 1, .max_lag = 10s, .backlog_ttl = 0s};
                change(n);
            };
            expect({{what, failover, found}}, {.lock = {.ttl = 30s}, .nodes = {.quarantine = quarantine}});
        }
    };
    const Change nothing = [](auto&) {};
    const std::vector<Failover> safe{
        {"as it should be", nothing},
        {"two replicas needed, and three or four connected",
         [](auto& n) {
             n.info.replicas = 4;
             n.failover->min_replicas = 2;
         }},
        {"three of three Sentinels", [](auto& n) { n.failover->sentinels = n.failover->listed = 3; }},
        {"6.2.7", [](auto& n) { n.info.redis_version = "6.2.7"; }},
    };
    expect_all(safe, {});
    const std::vector<Failover> unsafe{
        {"unknown", [](auto& n) { n.failover = FailoverFacts{}; }},
        {"denied",
         [](auto& n) {
             n.failover = FailoverFacts{};
             n.config_error = {Errc::permission_denied, "NOPERM"};
         }},
        {"a lag that the quarantine does not allow for", [](auto& n) { n.failover->max_lag = 11s; }},
        {"no replica asked for", [](auto& n) { n.failover->min_replicas = 0; }},
        {"however late", [](auto& n) { n.failover->max_lag = 0s; }},
        {"one replica needed, and three connected", [](auto& n) { n.info.replicas = 3; }},
        {"one of three Sentinels",
         [](auto& n) {
             n.failover->sentinels = 3;
             n.failover->listed = 1;
         }},
        {"6.2.6", [](auto& n) { n.info.redis_version = "6.2.6"; }},
        {"a backlog that ends", [](auto& n) { n.failover->backlog_ttl = 1h; }},
        {"a short quarantine", nothing, 46s - 1ms},
        {"no quarantine", nothing, 0ms},
    };
    expect_all(unsafe, {"warning failover"});
}

Change memory(std::uint64_t used, std::uint64_t max, const char* policy) {
    return [=](NodeFacts& node) {
        node.info.used_memory = used;
        node.info.max_memory = max;
        node.info.eviction = policy;
    };
}

TEST(NodeDiagnosis, ChecksTheMemory) {
    expect({
        {"lru without a bound", memory(50, 0, "allkeys-lru"), {}},
        {"lru", memory(50, 100, "allkeys-lru"), {"unsafe eviction"}},
        {"volatile", memory(50, 100, "volatile-ttl"), {"unsafe eviction"}},
        {"random", memory(50, 100, "volatile-random"), {"unsafe eviction"}},
        {"bounded", memory(90, 100, "noeviction"), {}},
        {"nearly full", memory(91, 100, "noeviction"), {"warning memory"}},
        {"full", memory(100, 100, "noeviction"), {"unsafe memory"}},
        {"full, and evicts", memory(100, 100, "allkeys-lfu"), {"unsafe eviction", "unsafe memory"}},
        {"unknown", [](auto& n) { n.info.max_memory.reset(); }, {}},
    });
    EXPECT_EQ(findings_after(memory(95'000'000, 100'000'000, "noeviction")).at(0).what,
              "90.6 MB of maxmemory 95.4 MB are used");
}

TEST(NodeDiagnosis, ChecksThePersistence) {
    const auto appendonly = [](bool on, const char* fsync, std::chrono::seconds uptime = 24h) {
        return [=](NodeFacts& node) {
            node.info.appendonly = on;
            node.appendfsync = fsync;
            node.info.uptime = uptime;
        };
    };
    const std::vector<Row> table{
        {"always", appendonly(true, "always"), {}},
        {"always, young", appendonly(true, "always", 1s), {}},
        {"everysec", appendonly(true, "everysec"), {"warning persistence"}},
        {"no", appendonly(true, "no"), {"warning persistence"}},
        {"off", appendonly(false, "always"), {"warning persistence"}},
        {"off, young", appendonly(false, "", 29s), {"warning persistence", "warning uptime"}},
        {"off, as old as the ttl", appendonly(false, "", 30s), {"warning persistence"}},
        {"unknown", appendonly(true, ""), {}},
    };
    expect(table);
    for (auto row : table) expect({{row.what, row.change, {}}}, {.nodes = {.quarantine = 30s}});
}

TEST(NodeDiagnosis, SuggestsTheExactSettingsForPersistence) {
    const auto findings =
        findings_after([](auto& n) { n.info.appendonly = false; }, {.lock = {.ttl = 1500ms}});
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_THAT(findings[0].remedy, HasSubstr("appendonly yes with appendfsync always"));
    EXPECT_THAT(findings[0].remedy, HasSubstr("--quarantine 1500ms in every client"));
}

TEST(NodeDiagnosis, ReportsFactsThatTheServerDoesNotReveal) {
    const NodeError refused{Errc::permission_denied, "NOPERM"};
    expect({
        {"info",
         [=](auto& n) {
             n.info = {};
             n.info_error = refused;
         },
         {"warning info"}},
        {"config",
         [=](auto& n) {
             n.appendfsync = "";
             n.config_error = refused;
         },
         {"warning persistence"}},
        {"config, where INFO tells enough",
         [=](auto& n) {
             n.info.appendonly = false;
             n.appendfsync = "";
             n.config_error = refused;
         },
         {"warning persistence"}},
        {"time",
         [=](auto& n) {
             n.clock_offset.reset();
             n.clock_error = refused;
         },
         {"warning clock"}},
    });
    const CheckupPlan with_quarantine{.nodes = {.quarantine = 30s}};
    expect({{"config, which does not matter then", [=](auto& n) { n.config_error = refused; }, {}}},
           with_quarantine);
    const auto findings = findings_after([=](auto& n) {
        n.user = "locker";
        n.appendfsync = "";
        n.config_error = refused;
    });
    EXPECT_THAT(findings.at(0).remedy, HasSubstr("ACL SETUSER locker +config|get"));
    const auto renamed = findings_after([](auto& n) {
        n.appendfsync = "";
        n.config_error = {Errc::server_error, "ERR unknown command 'CONFIG'"};
    });
    EXPECT_THAT(renamed.at(0).remedy, Not(HasSubstr("ACL")));
}

TEST(NodeDiagnosis, ChecksTheRoundTripTime) {
    const CheckupPlan plan{.nodes = {.node_timeout = 50ms}};
    expect({{"near", [](auto& n) { n.round_trip = 25ms; }, {}},
            {"far", [](auto& n) { n.round_trip = 26ms; }, {"warning speed"}},
            {"unknown", [](auto& n) { n.round_trip.reset(); }, {}}},
           plan);
}

TEST(NodeDiagnosis, ChecksTheQuarantine) {
    const auto marker = [](bool placed, std::chrono::milliseconds left) {
        return [=](NodeFacts& node) { node.marker = MarkerFacts{.placed = placed, .left = left}; };
    };
    expect({{"unknown", [](auto&) {}, {}},
            {"none", marker(false, 0ms), {"warning quarantine"}},
            {"young", marker(true, 1ms), {"warning quarantine"}},
            {"old", marker(true, 0ms), {}}},
           {.nodes = {.quarantine = 30s}});
    expect({{"without", marker(false, 0ms), {}}});
}

TEST(NodeDiagnosis, HasTheCauseIfTheNodeCannotBeAsked) {
    for (const auto cause : {Errc::timed_out, Errc::connection_failed, Errc::authentication_failed,
                             Errc::loading, Errc::permission_denied, Errc::unexpected_reply}) {
        const auto findings = findings_after([=](NodeFacts& node) {
            node.unreachable = {cause, "its words"};
            node.info = {};
        });
        ASSERT_EQ(brief(findings), std::vector<std::string>{"unreachable reach"});
        EXPECT_EQ(findings[0].what, make_error_code(cause).message() + ": its words");
        EXPECT_FALSE(findings[0].has_vote);
    }
}

// What is written for ports and firewalls does not help with a socket that this user may not open.
TEST(NodeDiagnosis, SuggestsOtherSettingsForAUnixSocket) {
    const auto remedy_for = [](const std::string& name) {
        return findings_after([=](NodeFacts& node) {
                   node.name = name;
                   node.unreachable = {Errc::connection_failed, "Permission denied"};
               })
            .at(0)
            .remedy;
    };
    EXPECT_THAT(remedy_for("/run/redis.sock"),
                testing::AllOf(HasSubstr("unixsocketperm"), Not(HasSubstr("port"))));
    EXPECT_THAT(remedy_for("10.0.0.1:6379"), testing::AllOf(HasSubstr("port"), Not(HasSubstr("unixsocket"))));
}

// A proxy without a server closes the connection in the same way as a server that expects TLS.
TEST(NodeDiagnosis, SuggestsTlsOrTheServerBehindAProxyIfTheConnectionIsClosed) {
    const auto findings = findings_after([](NodeFacts& node) {
        node.unreachable = {Errc::connection_failed,
                            "Server closed the connection; if this port expects TLS, write rediss://"};
    });
    EXPECT_EQ(findings.at(0).remedy,
              "if this port expects TLS, write rediss://; or look whether the proxy "
              "in front of it has a server");
}

// The address of the node is right, and neither its Sentinels nor its server hangs.
TEST(NodeDiagnosis, SuggestsNoOtherAddressIfTheSentinelsOrTheNameServersAreToBlame) {
    const std::string master =
        "the Sentinels answer, and the master that they name, 172.18.0.5:6379, does not";
    const std::vector<std::pair<NodeError, const char*>> table{
        {{Errc::connection_failed, master + ": Connection refused"}, "replica-announce-ip"},
        {{Errc::timed_out, "while connecting: " + master}, "replica-announce-ip"},
        {{Errc::timed_out, "while connecting: the name of the host is not resolved yet"}, "name servers"},
    };
    for (const auto& row : table) {
        const auto findings = findings_after([&](NodeFacts& node) { node.unreachable = row.first; });
        EXPECT_THAT(findings.at(0).remedy, HasSubstr(row.second)) << row.first.detail;
        EXPECT_THAT(findings.at(0).remedy, Not(HasSubstr("hangs")));
    }
}

// Servers before Redis 6 say the same in other words, and have no users.
TEST(NodeDiagnosis, SuggestsAnAddressThatSuitsTheAuthenticationOfTheServer) {
    const std::vector<std::pair<const char*, const char*>> table{
        {"ERR AUTH <password> called without any password configured for the default user",
         "remove the password from the node's address"},
        {"ERR Client sent AUTH, but no password is set", "remove the password from the node's address"},
        {"ERR wrong number of arguments for 'auth' command", "remove the user name from the node's address"},
        {"WRONGPASS invalid username-password pair", "put the password of requirepass"},
    };
    for (const auto& [words, remedy] : table) {
        const auto findings = findings_after([&, text = words](NodeFacts& node) {
            node.unreachable = {Errc::authentication_failed, text};
        });
        EXPECT_THAT(findings.at(0).remedy, HasSubstr(remedy)) << words;
    }
}

// ---- What was tried

PermissionCheck forbidden(const std::string& words, const std::string& verb = "extend",
                          const std::string& permissions = "+eval +pexpire") {
    return {verb, "orders:42", permissions, {Errc::permission_denied, words}};
}

/// Returns the findings on a node with these failed checks.
Findings findings_of(const std::vector<PermissionCheck>& failed) {
    return findings_after([&](NodeFacts& node) { node.permission_checks = failed; });
}

TEST(MissingPermission, IsParsedFromTheErrorMessage) {
    const std::vector<std::pair<const char*, const char*>> table{
        {"NOPERM this user has no permissions to run the 'eval' command", "+eval"},
        {"NOPERM User locker has no permissions to run the 'config|get' command", "+config|get"},
        {"NOPERM this user has no permissions to access one of the keys used as arguments", "~orders:42"},
        {"ERR The user executing the script can't run this command or subcommand", "+eval +pexpire"},
        {"ERR ACL failure in script: User x can't access at least one of the keys", "~orders:42"},
        {"NOPERM", "+eval +pexpire"},
        {"it's no 'Word of a server' at all", "+eval +pexpire"},
    };
    for (const auto& [words, permission] : table)
        EXPECT_EQ(missing_permission(forbidden(words)), permission) << words;
}

TEST(PermissionChecks, WithTheSameMissingPermissionAreOneFinding) {
    const auto findings = findings_after([](NodeFacts& node) {
        node.user = "locker";
        node.permission_checks = {forbidden("the 'eval' command", "extend", ""),
                                  forbidden("the 'eval' command", "release", ""),
                                  forbidden("the 'set' command", "acquire", "+set")};
    });
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_EQ(findings[0].remedy, "ACL SETUSER locker +eval");
    EXPECT_EQ(findings[1].remedy, "ACL SETUSER locker +set");
}

TEST(PermissionChecks, AreOmittedIfOthersAreMoreExact) {
    const auto findings = findings_of({forbidden("the 'pttl' command", "extend", ""),
                                       forbidden("a script can't", "extend", "+eval +pttl")});
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].remedy, "ACL SETUSER default +pttl");
}

TEST(PermissionChecks, SuggestAnotherResourceIfTheirsWasGenerated) {
    auto check = forbidden("no permissions to access one of the keys", "acquire", "");
    check.key = "redlock:doctor:0123";
    const auto findings = findings_of({check});
    ASSERT_EQ(brief(findings), std::vector<std::string>{"warning acl"});
    EXPECT_THAT(findings[0].remedy, HasSubstr("--probe"));
}

// Only a node whose SET fails grants no lock.
TEST(PermissionChecks, SayWhatTheNodeCannotDo) {
    const std::vector<std::pair<std::vector<std::string>, const char*>> table{
        {{"acquire", "extend", "release"}, "it grants no lock"},
        {{"extend", "release"},
         "it grants locks, and can neither extend nor release them, so each of them stays until its ttl "
         "ends"},
        {{"release"}, "it grants locks, and cannot release them, so each of them stays until its ttl ends"},
        {{"extend"}, "it grants locks, and cannot extend them"},
        {{"keep a quarantine"}, "the node cannot fully take part in locks"}};
    for (const auto& row : table) {
        const auto& why = row.second;
        std::vector<PermissionCheck> failed;
        for (const auto& verb : row.first)
            failed.push_back(
                {verb, "orders:42", "", {Errc::server_error, "ERR unknown command 'EVAL', with args"}});
        const auto findings = findings_of(failed);
        ASSERT_EQ(findings.size(), 1U) << why;
        EXPECT_EQ(findings[0].why, why);
        EXPECT_EQ(findings[0].remedy, "remove rename-command EVAL from the server's redis.conf");
    }
}

TEST(PermissionChecks, CostTheVoteIfTheyFail) {
    for (const auto cause : {Errc::permission_denied, Errc::out_of_memory, Errc::read_only, Errc::timed_out,
                             Errc::server_busy, Errc::server_error}) {
        auto node = healthy();
        node.permission_checks.push_back({"acquire", "orders:42", "+set", {cause, "its words"}});
        const auto diagnosis = diagnose({&node, 1}, {});
        EXPECT_EQ(diagnosis.nodes[0].verdict(), Severity::unsafe);
        EXPECT_EQ(diagnosis.votes(), 0U);
    }
}

TEST(PermissionChecks, SuggestIndependentServersInPlaceOfARedisCluster) {
    for (const auto* const words : {"MOVED 12179 10.0.0.2:6379", "ASK 12179 10.0.0.2:6379",
                                    "CLUSTERDOWN Hash slot not served", "CROSSSLOT Keys in request"}) {
        auto node = healthy();
        node.info.mode = "cluster";
        node.permission_checks.push_back({"release", "orders:42", "+eval", {Errc::server_error, words}});
        const auto diagnosis = diagnose({&node, 1}, {});
        EXPECT_EQ(brief(diagnosis.nodes[0].findings),
                  (std::vector<std::string>{"unsafe check", "warning mode"}));
        EXPECT_THAT(advice_of(diagnosis), HasSubstr("cluster-enabled no")) << words;
    }
}

TEST(PermissionChecks, DoNotRepeatFindingsFromInfo) {
    const auto of_a_replica = findings_after([](NodeFacts& node) {
        node.info.role = "replica";
        node.permission_checks.push_back({"acquire", "orders:42", "+set", {Errc::read_only, "READONLY"}});
    });
    EXPECT_EQ(brief(of_a_replica), std::vector<std::string>{"unsafe role"});
    const auto of_a_full_server = findings_after([](NodeFacts& node) {
        memory(2, 1, "noeviction")(node);
        node.permission_checks.push_back({"acquire", "orders:42", "+set", {Errc::out_of_memory, "OOM"}});
    });
    EXPECT_EQ(brief(of_a_full_server), std::vector<std::string>{"unsafe memory"});
}

}  // namespace
}  // namespace redlock::tool::node_diagnosis_test

// `redlock doctor` as users who may not do everything: it names the rule to add.
#include "invocation.hpp"
#include "live_world.hpp"

#include <array>
#include <string>

namespace redlock::test::doctor_permissions_live_test {
namespace {

const std::string least = "+set +get +del +pttl +pexpire +eval +evalsha";
const std::string to_look = " +info +time +config|get";

const std::string to_queue =
    " +exists +zrange +zadd +zpopmin +zrem +zrank +publish +subscribe ~{orders:*}:queue resetchannels "
    "&redlock:wake:*";

/// One server with a user who may do that.
struct Permitted {
    explicit Permitted(const std::string& rules)
        : server{RedisConfig{}.keeps_data().user("locker on >s3cret resetkeys -@all ~orders:* " + rules)} {}

    Invocation doctor(const std::vector<std::string>& more = {}) {
        return Invocation{server.uri("locker", "s3cret"), joined({"doctor", "--probe", the_resource}, more)};
    }
    bool clean() {
        return wait_until([this] { return server.command({"DBSIZE"}) == "0"; },
                          5s);  // less than the probe lasts
    }

    RedisServer server;
};

TEST(DoctorPermissions, FromTheReadmeAreEnough) {
    Permitted world{least + to_look};
    auto it = world.doctor();
    EXPECT_EQ(it.status(), 0) << it.output();
    EXPECT_TRUE(world.clean());
}

struct AMissingPermission : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(DoctorPermissions, AMissingPermission,
                         testing::Values("set", "get", "del", "pttl", "pexpire", "eval"),
                         [](const auto& info) { return info.param; });

TEST_P(AMissingPermission, IsUnsafeAndReportedWithItsAclRule) {
    Permitted world{least + to_look + " -" + GetParam()};
    const auto json = world.doctor({"--json"}).json();
    EXPECT_EQ(json.at("verdict"), "unsafe");
    const auto& findings = json["nodes"][0].at("findings");
    ASSERT_THAT(subjects(findings), ElementsAre("acl"));
    EXPECT_EQ(findings[0].at("remedy"), std::string{"ACL SETUSER locker +"} + GetParam());
    EXPECT_TRUE(world.clean()) << "it must not acquire for long what it cannot release";
    EXPECT_EQ(world.doctor().status(), 2);
}

TEST(DoctorPermissions, AreAllReportedAtOnce) {
    Permitted world{least + to_look + " -get -del -pttl -pexpire"};
    const auto json = world.doctor({"--json"}).json();
    std::vector<std::string> remedies;
    for (const auto& finding : json["nodes"][0].at("findings")) remedies.push_back(finding.at("remedy"));
    for (const std::string rule : {"+get", "+del", "+pttl", "+pexpire"})
        EXPECT_THAT(remedies, testing::Contains("ACL SETUSER locker " + rule));
}

TEST(DoctorPermissions, ForTheResourceAreReported) {
    Permitted world{least + to_look + " resetkeys ~customers:*"};
    auto it = world.doctor();
    EXPECT_EQ(it.status(), 2);
    EXPECT_THAT(it.output(), HasSubstr("ACL SETUSER locker ~orders:42\n"));
}

// The random name in braces is in the names of these keys.
TEST(DoctorPermissions, ForKeysBesideAGeneratedResourceLeadToAHint) {
    Permitted world{least + to_look + to_queue};
    Invocation it{world.server.uri("locker", "s3cret"), {"doctor", "--fencing", "--fair"}};
    EXPECT_EQ(it.status(), 1) << it.output();
    EXPECT_THAT(it.output(), HasSubstr("--probe with a resource that the ACL allows"));
    EXPECT_THAT(it.output(), Not(HasSubstr("ACL SETUSER locker ~")));
}

TEST(DoctorPermissions, ForInspectionMayBeMissing) {
    Permitted world{least};
    auto it = world.doctor();
    EXPECT_EQ(it.status(), 1) << it.output();
    for (const auto* rule : {"+info", "+time"}) EXPECT_THAT(it.output(), HasSubstr(rule));
    Permitted without_config{least + " +info +time"};
    auto other = without_config.doctor();
    EXPECT_EQ(other.status(), 1);
    EXPECT_THAT(other.output(), HasSubstr("ACL SETUSER locker +config|get"));
}

TEST(DoctorPermissions, ForFencingAndQuarantineAreTestedOnRequest) {
    Permitted plain{least + to_look};
    for (const std::vector<std::string>& guarantee :
         {std::vector<std::string>{"--fencing"}, {"--quarantine", "1m"}}) {
        auto it = plain.doctor(guarantee);
        EXPECT_EQ(it.status(), 2) << guarantee[0];
        EXPECT_THAT(it.output(), HasSubstr("+exists"));
    }
    EXPECT_THAT(plain.doctor({"--fencing", "--json"}).json().dump(), HasSubstr("~{orders:42}:fence"));
    EXPECT_THAT(plain.doctor({"--quarantine", "1m", "--json"}).json().dump(), HasSubstr("~redlock:since"));
    Permitted whole{least + to_look + " ~{orders:*}:fence ~redlock:since +exists"};
    EXPECT_EQ(whole.doctor({"--fencing"}).status(), 0) << whole.doctor({"--fencing"}).output();
    EXPECT_EQ(whole.doctor({"--fencing", "--quarantine", "1m"}).status(), 1) << "for it has no marker yet";
    EXPECT_TRUE(whole.clean());
}

TEST(DoctorPermissions, ForTheQueueAreTestedOnRequestWithoutChangingItsKey) {
    Permitted world{least + to_look + to_queue};
    auto it = world.doctor({"--fair"});
    EXPECT_EQ(it.status(), 0) << it.output();
    EXPECT_TRUE(world.clean());
    EXPECT_EQ(world.doctor().status(), 0);
    ASSERT_EQ(world.server.command({"ZADD", "{orders:42}:queue", "1", "an application's member"}), "1");
    EXPECT_EQ(world.doctor({"--fair"}).status(), 0);
    EXPECT_EQ(world.server.command({"PTTL", "{orders:42}:queue"}), "-1");
    EXPECT_EQ(world.server.command({"ZCARD", "{orders:42}:queue"}), "1");
}

/// Its name, the rules that take it away, and the rule to add.
using QueuePermission = std::array<const char*, 3>;
struct AMissingQueuePermission : testing::TestWithParam<QueuePermission> {};
INSTANTIATE_TEST_SUITE_P(
    DoctorPermissions, AMissingQueuePermission,
    testing::Values(QueuePermission{"exists", "-exists", "+exists"},
                    QueuePermission{"zrange", "-zrange", "+zrange"},
                    QueuePermission{"zadd", "-zadd", "+zadd"},
                    QueuePermission{"zpopmin", "-zpopmin", "+zpopmin"},
                    QueuePermission{"zrem", "-zrem", "+zrem"}, QueuePermission{"zrank", "-zrank", "+zrank"},
                    QueuePermission{"publish", "-publish", "+publish"},
                    QueuePermission{"subscribe", "-subscribe", "+subscribe"},
                    QueuePermission{"channels", "resetchannels", "&redlock:wake:*"},
                    QueuePermission{"keys", "resetkeys ~orders:*", "~{orders:42}:queue"}),
    [](const auto& info) { return std::string{info.param[0]}; });

TEST_P(AMissingQueuePermission, IsAWarningAndReportedWithItsAclRule) {
    const auto& [name, rules, remedy] = GetParam();
    Permitted world{least + to_look + to_queue + " " + rules};
    const auto json = world.doctor({"--fair", "--json"}).json();
    EXPECT_EQ(json.at("verdict"), "warning") << json.dump(2);
    const auto& findings = json["nodes"][0].at("findings");
    ASSERT_THAT(subjects(findings), ElementsAre("acl"));
    EXPECT_EQ(findings[0].at("remedy"), std::string{"ACL SETUSER locker "} + remedy);
    EXPECT_EQ(world.doctor({"--fair"}).status(), 1);
}

}  // namespace
}  // namespace redlock::test::doctor_permissions_live_test

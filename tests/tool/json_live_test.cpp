// The manual names each field that --json prints, and no other: what is printed in many situations is
// compared with the section JSON.
#include "guarantees/guarantee_world.hpp"
#include "invocation.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/causes.hpp"

namespace redlock::test::json_live_test {
namespace {

using nlohmann::json;

/// A field and a type that it has, as in "nodes[].cause.detail null".
using Fields = std::set<std::string>;

std::string type_of(const json& value) {
    return value.is_number_integer() ? "integer" : value.type_name();
}

std::vector<std::string> split(const std::string& text, const std::string& between) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (auto end = text.find(between); end != text.npos; end = text.find(between, begin)) {
        parts.push_back(text.substr(begin, end - begin));
        begin = end + between.size();
    }
    parts.push_back(text.substr(begin));
    return parts;
}

/// Its lines.
std::vector<std::string> manual() {
    return split(content(REDLOCK_MANUAL), "\n");
}

std::vector<std::string> section_json() {
    const auto lines = manual();
    const auto begin = std::ranges::find(lines, ".Sh JSON");
    const auto end = std::find_if(begin == lines.end() ? begin : begin + 1, lines.end(),
                                  [](const auto& line) { return line.starts_with(".Sh "); });
    return {begin, end};
}

/// ".Ss acquire , extend", ".It Va owner , nodes[].owner No string or null": the fields by the commands.
std::map<std::set<std::string>, Fields> fields_of_manual() {
    std::map<std::set<std::string>, Fields> result;
    std::set<std::string> commands;
    for (const auto& line : section_json()) {
        std::smatch match;
        if (line.starts_with(".Ss ")) {
            const auto words = split(line.substr(4), " , ");
            commands = {words.begin(), words.end()};
        }
        if (!std::regex_match(line, match, std::regex{R"(\.It Va (.*) No (.*))"})) continue;
        for (const auto& name : split(match[1], " , "))
            for (const auto& type : split(match[2], " or "))
                EXPECT_TRUE(result[commands].insert(name + " " + type).second) << line << " stands twice";
    }
    return result;
}

std::vector<std::string> without(const Fields& fields, const Fields& others) {
    std::vector<std::string> rest;
    std::ranges::set_difference(fields, others, std::back_inserter(rest));
    return rest;
}

/// What the commands of one part of the section have printed.
class Shown {
public:
    /// Returns the object.
    json run(const Cluster& cluster, std::vector<std::string> arguments, const std::string& timeout = "2s") {
        return run(cluster.uri_list(), std::move(arguments), timeout);
    }
    json run(const std::string& nodes, std::vector<std::string> arguments,
             const std::string& timeout = "2s") {
        commands_.insert(arguments.front());
        arguments.emplace_back("--json");
        auto object = Invocation{nodes, std::move(arguments), timeout}.json();
        add(object);
        return object;
    }

    /// Shows a resource that is free, and then held with a description. Returns its lock.
    Lock free_and_then_held(LiveWorld& world, const std::string& command) {
        EXPECT_EQ(run(world, {command, the_resource}).at("state"), "free");
        auto lock = world.lock(LockOptions{.ttl = 1min, .holder = "host=web1"});
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_TRUE(wait_until([&] {
            return run(world, {command, the_resource}).at("holder") == "host=web1";
        }));
        return lock;
    }

    void expect_that_the_manual_says_so() const {
        const auto manual = fields_of_manual();
        const auto section = manual.find(commands_);
        ASSERT_TRUE(section != manual.end()) << "there is no .Ss of these commands";
        EXPECT_THAT(without(fields_, section->second), IsEmpty()) << "which the manual does not name";
        EXPECT_THAT(without(section->second, fields_), IsEmpty()) << "which the manual alone names";
    }

private:
    void add(const json& value, const std::string& name = {}) {
        if (value.is_array())
            for (const auto& element : value) add(element, name + "[]");
        if (!value.is_object()) return;
        std::set<std::string> members;
        for (const auto& [key, member] : value.items()) {
            const auto field = name.empty() ? key : name + "." + key;
            members.insert(key);
            fields_.insert(field + " " + type_of(member));
            add(member, field);
        }
        EXPECT_EQ(members_.try_emplace(name, members).first->second, members) << "in " << name;
    }

    std::set<std::string> commands_{};
    Fields fields_{};
    std::map<std::string, std::set<std::string>> members_{};  ///< of each object: always the same
};

const std::string nobody(40, '0');

TEST(LeaseJson, HasTheFieldsOfTheManual) {
    Shown shown;
    Cluster cluster{3};
    const auto acquired = shown.run(cluster, {"acquire", "--fencing", "job"});
    const std::string owner = acquired.at("owner");
    EXPECT_EQ(acquired.at("resource"), "job");
    EXPECT_EQ(owner, holder(cluster[0], "job"));
    EXPECT_GT(acquired.at("fencing_token"), 0);
    EXPECT_GT(acquired.at("validity_ms"), 20'000);
    EXPECT_EQ(acquired.at("nodes").size(), 3U);
    EXPECT_EQ(acquired["nodes"][0].at("name"), cluster[0].name());
    EXPECT_EQ(acquired["nodes"][0].at("vote"), "granted");
    EXPECT_EQ(shown.run(cluster, {"acquire", "-n", "job"}).at("error").at("code"), "held_by_other");
    EXPECT_TRUE(shown.run(cluster, {"extend", "--owner", owner, "job"}).at("error").is_null());
    EXPECT_EQ(shown.run(cluster, {"break", "--owner", nobody, "job"}).at("error").at("code"), "lost");
    EXPECT_TRUE(shown.run(cluster, {"release", "--owner", owner, "job"}).at("error").is_null());
    EXPECT_EQ(shown.run(cluster, {"extend", "--owner", owner, "job"}).at("error").at("code"), "lost");
    cluster[0].kill();
    const auto without_one = shown.run(cluster, {"acquire", "job"});
    EXPECT_TRUE(without_one.at("error").is_null());
    EXPECT_EQ(without_one["nodes"][0].at("cause").at("code"), "connection_failed");
    EXPECT_EQ(without_one["nodes"][0]["cause"].at("detail"), "Connection refused");
    cluster[1].freeze();
    const auto without_two = shown.run(cluster, {"acquire", "-n", "another"}, "300ms");
    cluster[1].thaw();
    EXPECT_EQ(without_two.at("error").at("code"), "no_quorum");
    EXPECT_EQ(without_two.at("attempts"), 3) << "-n is about other holders";
    EXPECT_EQ(without_two["nodes"][1].at("cause").at("code"), "timed_out");
    shown.expect_that_the_manual_says_so();
}

TEST(StatusJson, HasTheFieldsOfTheManual) {
    Shown shown;
    LiveWorld world{3};
    const auto lock = shown.free_and_then_held(world, "status");
    ASSERT_EQ(world[0].command({"DEL", the_resource}), "1");
    ASSERT_EQ(world[0].command({"LPUSH", the_resource, "1"}), "1");
    EXPECT_EQ(shown.run(world, {"status", the_resource})["nodes"][0].at("type"), "list");
    world[0].kill();
    world[1].freeze();
    const auto silent = shown.run(world.uri_list(), {"status", the_resource}, "300ms");
    world[1].thaw();
    EXPECT_EQ(silent.at("state"), "no_quorum");
    EXPECT_EQ(silent["nodes"][0].at("cause").at("code"), "connection_failed");
    EXPECT_EQ(silent["nodes"][1].at("cause").at("code"), "timed_out");
    shown.expect_that_the_manual_says_so();
}

TEST(WhoJson, HasTheFieldsOfTheManual) {
    Shown shown;
    LiveWorld world{3};
    const auto lock = shown.free_and_then_held(world, "who");
    const auto held = shown.run(world, {"who", the_resource});
    EXPECT_EQ(held.at("owner"), lock.owner());
    EXPECT_EQ(held.at("held_on"), 3);
    EXPECT_FALSE(held.contains("nodes"));
    shown.expect_that_the_manual_says_so();
}

TEST(BenchJson, HasTheFieldsOfTheManual) {
    Shown shown;
    Cluster cluster{3};
    cluster[0].kill();
    const auto of_two = shown.run(cluster, {"bench", "--seconds", "200ms", "--threads", "8"});
    EXPECT_TRUE(of_two.at("error").is_null());
    ASSERT_EQ(of_two.at("rounds").size(), 2U);
    EXPECT_EQ(of_two["rounds"][0].at("order"), "sequential");
    EXPECT_EQ(of_two["rounds"][1].at("order"), "all_at_once");
    for (const auto& round : of_two["rounds"]) {
        std::uint64_t counted = 0;
        for (const auto& bar : round.at("histogram")) counted += bar.at("count").get<std::uint64_t>();
        EXPECT_EQ(counted, round.at("acquired")) << round;
        EXPECT_GT(round.at("per_second"), 0) << round;
        EXPECT_LE(round.at("acquire").at("p50_ms"), round["acquire"].at("max_ms")) << round;
        EXPECT_EQ(round.at("no_votes")[0].at("node"), cluster[0].name()) << round;
        const auto& writes = round.at("shared_writes");
        // Two nodes get two commands for each acquisition. A round in between may be alone, and does not
        // share.
        EXPECT_GE(writes.at("commands"), 3 * round["acquired"].get<int>()) << round;
        EXPECT_LE(writes.at("waited").at("p50_ms"), writes["waited"].at("max_ms")) << round;
    }
    cluster[1].kill();
    const auto of_one = shown.run(cluster, {"bench", "--seconds", "200ms"});
    EXPECT_EQ(of_one.at("error").at("code"), "no_quorum");
    EXPECT_TRUE(of_one["rounds"][0].at("shared_writes").is_null());
    EXPECT_TRUE(of_one["rounds"][0].at("acquire").is_null());
    EXPECT_EQ(of_one["rounds"][0].at("failures")[0].at("verb"), "acquire");
    EXPECT_EQ(of_one["rounds"][0]["failures"][0].at("error").at("code"), "no_quorum");
    shown.expect_that_the_manual_says_so();
}

TEST(DoctorJson, HasTheFieldsOfTheManual) {
    Shown shown;
    Cluster cluster{3, RedisConfig{}.keeps_data().user("locker on >s3cret ~* +@all -set")};
    EXPECT_EQ(shown.run(cluster, {"doctor"}).at("verdict"), "ok");
    whole_since(cluster[0], 1min);
    const auto marked = shown.run(cluster, {"doctor", "--quarantine", "30s"});
    EXPECT_EQ(marked["nodes"][0].at("quarantine_left_ms"), 0);
    EXPECT_TRUE(marked["nodes"][1].at("quarantine_left_ms").is_null());
    const auto forbidden = shown.run(cluster[0].uri("locker", "s3cret"), {"doctor"});
    EXPECT_EQ(forbidden["nodes"][0]["findings"][0].at("cause").at("code"), "permission_denied");
    cluster[0].kill();
    cluster[1].freeze();
    const auto silent = shown.run(cluster, {"doctor"}, "300ms");
    cluster[1].thaw();
    EXPECT_EQ(silent.at("verdict"), "unsafe");
    EXPECT_EQ(silent["nodes"][0]["findings"][0].at("cause").at("code"), "connection_failed");
    EXPECT_EQ(silent["nodes"][1]["findings"][0].at("cause").at("code"), "timed_out");
    shown.expect_that_the_manual_says_so();
}

// A part of the section more needs a test more above.
TEST(ToolJson, IsInTheManualForEachCommand) {
    std::set<std::string> documented;
    for (const auto& [commands, fields] : fields_of_manual())
        documented.insert(commands.begin(), commands.end());
    EXPECT_EQ(fields_of_manual().size(), 5U);
    std::size_t others = 0;
    for (const auto& line : manual()) {
        std::smatch match;
        if (!std::regex_match(line, match, std::regex{R"(\.It Cm ([a-z]+))"})) continue;
        Tool help{{match[1], "--help"}, {}};
        const bool has_json = help.wait().out.find("--json") != std::string::npos;
        EXPECT_EQ(has_json, documented.contains(match[1])) << match[1];
        if (!has_json) ++others;
    }
    EXPECT_GT(others, 0U);
}

TEST(ToolJson, HasTheCodesOfTheManual) {
    std::set<std::string_view> codes;
    for (const auto& outcome : detail::outcomes) codes.insert(outcome.name);
    for (const auto& cause : detail::causes) codes.insert(cause.name);
    for (const auto& line : section_json())
        if (line.starts_with(".Er ")) {
            const auto code = split(line, " ").at(1);
            EXPECT_TRUE(codes.contains(code)) << code;
        }
}

}  // namespace
}  // namespace redlock::test::json_live_test

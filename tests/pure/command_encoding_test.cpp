// The bytes of the commands that acquire, extend, count and release, in each form that they are sent in.
#include "encoded_commands.hpp"

namespace redlock::test::command_encoding_test {
namespace {

const Command acquire{.verb = Verb::set_if_absent, .owner = owner, .ttl = 10s};
const Command extend{.verb = Verb::compare_and_expire, .owner = owner, .ttl = 10s};
const Command release{.verb = Verb::compare_and_delete, .owner = owner};
const Command count{.verb = Verb::set_and_count, .owner = owner, .ttl = 10s};
const Command raise_to{.verb = Verb::raise_count, .owner = owner, .fence = 1'760'000'000'123'456};
const Command early_release{.verb = Verb::compare_and_delete, .owner = owner, .hold_remaining = 2500ms};

Command with_ttl(Command command, std::chrono::milliseconds ttl) {
    command.ttl = ttl;
    return command;
}

// ---- The protocol of Redis

TEST(CommandBytes, AreAnArrayOfStringsWithLengths) {
    EXPECT_EQ(bytes_of({.resources = {"orders:42"}, .command = acquire}, ScriptForm::by_sha1),
              "*6\r\n"
              "$3\r\nSET\r\n"
              "$9\r\norders:42\r\n"
              "$40\r\n00112233445566778899aabbccddeeff00112233\r\n"
              "$2\r\nNX\r\n"
              "$2\r\nPX\r\n"
              "$5\r\n10000\r\n");
}

TEST(CommandBytes, ContainAnyWordUnchanged) {
    std::string bytes;
    detail::append(bytes, {"AUTH", "", "p\r\n$1\0"s, std::string(1234, 'x')});
    EXPECT_EQ(bytes, "*4\r\n$4\r\nAUTH\r\n$0\r\n\r\n$6\r\np\r\n$1\0\r\n$1234\r\n"s + std::string(1234, 'x') +
                         "\r\n");
}

TEST(CommandBytes, AreAppendedToEarlierCommands) {
    std::string bytes = "*1\r\n$4\r\nPING\r\n";
    detail::append(bytes, {"SELECT", "2"});
    EXPECT_EQ(bytes, "*1\r\n$4\r\nPING\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n");
}

// ---- Acquisitions

TEST(CommandBytes, OfAnAcquireAreAPlainSet) {
    expect_no_script({
        {"a ttl", "a", acquire, no_queue, any_node, "SET a @owner NX PX 10000"},
        {"the shortest ttl", "a", with_ttl(acquire, 1ms), no_queue, any_node, "SET a @owner NX PX 1"},
        {"the longest ttl, a century", "a", with_ttl(acquire, 876'600h), no_queue, any_node,
         "SET a @owner NX PX 3155760000000"},
        {"a binary name", Words{"\r\n\0 \xFF"s}, acquire, no_queue, any_node,
         Words{"SET", "\r\n\0 \xFF"s, owner, "NX", "PX", "10000"}},
        {"the first attempt of a fair lock", "a", acquire, fair, any_node, "SET a @owner NX PX 10000"},
        {"a waiter's, but the user may not use queues", "a", acquire, waiter, without_queues,
         "SET a @owner NX PX 10000"},
    });
}

TEST(CommandBytes, OfAnAcquireOfSeveralOrWithAQuarantineUseAcquire) {
    expect_script(
        detail::scripts::acquire,
        {
            {"several", "a b", acquire, no_queue, any_node, "2 a b @owner 2 10000 '' '' ''"},
            {"a quarantine", "a", acquire, no_queue, with_quarantine,
             "2 a redlock:since @owner 1 10000 '' '' 3600000000"},
            {"the shortest quarantine", "a", acquire, no_queue, Recipient{.quarantine = 1ms},
             "2 a redlock:since @owner 1 10000 '' '' 1000"},
            {"the longest quarantine, a century", "a", acquire, no_queue, Recipient{.quarantine = 876'600h},
             "2 a redlock:since @owner 1 10000 '' '' 3155760000000000"},
            {"several, a quarantine", "a b c", with_ttl(acquire, 250ms), no_queue, with_quarantine,
             "4 a b c redlock:since @owner 3 250 '' '' 3600000000"},
            {"names in braces, which need no key beside them here", "{ {} {x} }y{", acquire, no_queue,
             any_node, "4 { {} {x} }y{ @owner 4 10000 '' '' ''"},
            {"binary names", Words{"\0"s, "\n"}, acquire, no_queue, any_node,
             Words{"2", "\0"s, "\n", owner, "2", "10000", "", "", ""}},
            {"a waiter's, a quarantine, but the user may not use queues", "a", acquire, waiter,
             Recipient{.quarantine = 1h, .allows_queue = false},
             "2 a redlock:since @owner 1 10000 '' '' 3600000000"},
        });
}

TEST(CommandBytes, CanHaveAThousandResources) {
    Row row{.command = acquire, .words = {"1000"}};
    for (int i = 1000; i < 2000; ++i) row.resources.push_back("r" + std::to_string(i));
    row.words.insert(row.words.end(), row.resources.begin(), row.resources.end());
    for (const auto* const argument : {owner.c_str(), "1000", "10000", "", "", ""})
        row.words.emplace_back(argument);
    expect_script(detail::scripts::acquire, {row});
    EXPECT_TRUE(bytes_of(row, ScriptForm::whole).starts_with("*1009\r\n"));
}

// ---- Extensions

TEST(CommandBytes, OfAnExtensionUseTheScriptOfTheSpecification) {
    expect_script(detail::scripts::compare_and_expire,
                  {
                      {"a ttl", "a", extend, no_queue, any_node, "1 a @owner 10000"},
                      {"the longest ttl, a binary name", Words{"{\0}\n"s}, with_ttl(extend, 876'600h),
                       no_queue, any_node, Words{"1", "{\0}\n"s, owner, "3155760000000"}},
                  });
}

TEST(CommandBytes, OfAnExtensionOfSeveralOrWithAQuarantineUseExtend) {
    expect_script(detail::scripts::extend,
                  {
                      {"several", "a b", extend, no_queue, any_node, "2 a b @owner 2 10000 ''"},
                      {"a quarantine", "a", extend, no_queue, with_quarantine,
                       "2 a redlock:since @owner 1 10000 3600000000"},
                      {"several, a quarantine", "a b {x}", extend, no_queue, with_quarantine,
                       "4 a b {x} redlock:since @owner 3 10000 3600000000"},
                  });
}

// ---- Fencing. A counter is kept for a day, and for two quarantines more.

TEST(CommandBytes, OfAFencedAcquireUseAcquire) {
    expect_script(
        detail::scripts::acquire,
        {
            {"one", "a", count, no_queue, any_node, "2 a {a}:fence @owner 1 10000 '' 86400000 ''"},
            {"a quarantine", "a", count, no_queue, with_quarantine,
             "3 a {a}:fence redlock:since @owner 1 10000 '' 93600000 3600000000"},
            {"several", "a b", count, no_queue, any_node,
             "4 a b {a}:fence {b}:fence @owner 2 10000 '' 86400000 ''"},
            {"several, the longest quarantine", "a b", count, no_queue, Recipient{.quarantine = 876'600h},
             "5 a b {a}:fence {b}:fence redlock:since @owner 2 10000 '' 6311606400000 3155760000000000"},
            {"names with braces", "a{1} {x}", count, no_queue, any_node,
             "4 a{1} {x} a{1}:fence {x}:tag-fence @owner 2 10000 '' 86400000 ''"},
            {"the first attempt of a fair lock", "a", count, fair, any_node,
             "2 a {a}:fence @owner 1 10000 '' 86400000 ''"},
            {"a waiter's, but the user may not use queues", "a", count, waiter, without_queues,
             "2 a {a}:fence @owner 1 10000 '' 86400000 ''"},
        });
}

TEST(CommandBytes, OfTheSecondRoundOfFencingUseRaiseCounts) {
    expect_script(
        detail::scripts::raise_counts,
        {
            {"one", "a", raise_to, no_queue, any_node, "2 a {a}:fence @owner 1 1760000000123456 86400000 ''"},
            {"a quarantine", "a", raise_to, no_queue, with_quarantine,
             "3 a {a}:fence redlock:since @owner 1 1760000000123456 93600000 3600000000"},
            {"several", "a b", raise_to, no_queue, any_node,
             "4 a b {a}:fence {b}:fence @owner 2 1760000000123456 86400000 ''"},
            {"several, a quarantine", "a {b}", raise_to, no_queue, with_quarantine,
             "5 a {b} {a}:fence {b}:tag-fence redlock:since @owner 2 1760000000123456 93600000 3600000000"},
            {"the largest number that a script can tell from its neighbours", "a",
             Command{.verb = Verb::raise_count, .owner = owner, .ttl = 10s, .fence = 1ULL << 53U}, no_queue,
             any_node, "2 a {a}:fence @owner 1 9007199254740992 86400000 ''"},
        });
}

// ---- Releases. They need no vote, and so no marker.

TEST(CommandBytes, OfAReleaseUseTheScriptOfTheSpecification) {
    expect_script(
        detail::scripts::compare_and_delete,
        {
            {"one", "a", release, no_queue, any_node, "1 a @owner"},
            {"a quarantine", Words{"{\0}\n"s}, release, no_queue, with_quarantine,
             Words{"1", "{\0}\n"s, owner}},
            {"a fair one, but the user may not use queues", "a", release, fair, without_queues, "1 a @owner"},
        });
}

TEST(CommandBytes, OfAReleaseOfSeveralUseRelease) {
    expect_script(
        detail::scripts::release,
        {
            {"two", "a b", release, no_queue, any_node, "2 a b @owner 2 '' '' '' ''"},
            {"a quarantine", "a b {c}", release, no_queue, with_quarantine, "3 a b {c} @owner 3 '' '' '' ''"},
            {"a fair one, but the user may not use queues", "a b", release, fair, without_queues,
             "2 a b @owner 2 '' '' '' ''"},
        });
}

TEST(CommandBytes, OfAReleaseWithinTheMinimumHoldTimeUseRelease) {
    expect_script(
        detail::scripts::release,
        {
            {"one", "a", early_release, no_queue, any_node, "1 a @owner 1 2500 '' '' ''"},
            {"one millisecond is left", "a",
             Command{.verb = Verb::compare_and_delete, .owner = owner, .hold_remaining = 1ms}, no_queue,
             any_node, "1 a @owner 1 1 '' '' ''"},
            {"a quarantine", "{a}", early_release, no_queue, with_quarantine, "1 {a} @owner 1 2500 '' '' ''"},
            {"a fair one, which wakes nobody", "a", early_release, fair, any_node,
             "1 a @owner 1 2500 '' '' ''"},
            {"several", "a b c", early_release, no_queue, any_node, "3 a b c @owner 3 2500 '' '' ''"},
        });
}

}  // namespace
}  // namespace redlock::test::command_encoding_test

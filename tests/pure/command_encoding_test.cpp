// The bytes of the commands that acquire, extend, count and release, in each form that they are sent in.
#include "encoded_commands.hpp"

namespace redlock::test {
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
        {.variant = "a ttl",
         .resources = {"a"},
         .command = acquire,
         .words = {"SET", "a", owner, "NX", "PX", "10000"}},
        {.variant = "the shortest ttl",
         .resources = {"a"},
         .command = with_ttl(acquire, 1ms),
         .words = {"SET", "a", owner, "NX", "PX", "1"}},
        {.variant = "the longest ttl, a century",
         .resources = {"a"},
         .command = with_ttl(acquire, 876'600h),
         .words = {"SET", "a", owner, "NX", "PX", "3155760000000"}},
        {.variant = "a binary name",
         .resources = {"\r\n\0 \xFF"s},
         .command = acquire,
         .words = {"SET", "\r\n\0 \xFF"s, owner, "NX", "PX", "10000"}},
        {.variant = "the first attempt of a fair lock",
         .resources = {"a"},
         .command = acquire,
         .queue = QueueTerms{.reservation_ttl = 100ms},
         .words = {"SET", "a", owner, "NX", "PX", "10000"}},
        {.variant = "a waiter's, but the user may not use queues",
         .resources = {"a"},
         .command = acquire,
         .queue = QueueTerms{.ticket = ticket, .reservation_ttl = 100ms},
         .to = without_queues,
         .words = {"SET", "a", owner, "NX", "PX", "10000"}},
    });
}

TEST(CommandBytes, OfAnAcquireOfSeveralOrWithAQuarantineUseAcquire) {
    expect_script(
        detail::scripts::acquire,
        {
            {.variant = "several",
             .resources = {"a", "b"},
             .command = acquire,
             .words = {"2", "a", "b", owner, "2", "10000", "", "", ""}},
            {.variant = "a quarantine",
             .resources = {"a"},
             .command = acquire,
             .to = with_quarantine,
             .words = {"2", "a", "redlock:since", owner, "1", "10000", "", "", "3600000000"}},
            {.variant = "the shortest quarantine",
             .resources = {"a"},
             .command = acquire,
             .to = {.quarantine = 1ms},
             .words = {"2", "a", "redlock:since", owner, "1", "10000", "", "", "1000"}},
            {.variant = "the longest quarantine, a century",
             .resources = {"a"},
             .command = acquire,
             .to = {.quarantine = 876'600h},
             .words = {"2", "a", "redlock:since", owner, "1", "10000", "", "", "3155760000000000"}},
            {.variant = "several, a quarantine",
             .resources = {"a", "b", "c"},
             .command = with_ttl(acquire, 250ms),
             .to = with_quarantine,
             .words = {"4", "a", "b", "c", "redlock:since", owner, "3", "250", "", "", "3600000000"}},
            {.variant = "names in braces, which need no key beside them here",
             .resources = {"{", "{}", "{x}", "}y{"},
             .command = acquire,
             .words = {"4", "{", "{}", "{x}", "}y{", owner, "4", "10000", "", "", ""}},
            {.variant = "binary names",
             .resources = {"\0"s, "\n"},
             .command = acquire,
             .words = {"2", "\0"s, "\n", owner, "2", "10000", "", "", ""}},
            {.variant = "a waiter's, a quarantine, but the user may not use queues",
             .resources = {"a"},
             .command = acquire,
             .queue = QueueTerms{.ticket = ticket, .reservation_ttl = 100ms},
             .to = {.quarantine = 1h, .allows_queue = false},
             .words = {"2", "a", "redlock:since", owner, "1", "10000", "", "", "3600000000"}},
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
    expect_script(
        detail::scripts::compare_and_expire,
        {
            {.variant = "a ttl", .resources = {"a"}, .command = extend, .words = {"1", "a", owner, "10000"}},
            {.variant = "the longest ttl, a binary name",
             .resources = {"{\0}\n"s},
             .command = with_ttl(extend, 876'600h),
             .words = {"1", "{\0}\n"s, owner, "3155760000000"}},
        });
}

TEST(CommandBytes, OfAnExtensionOfSeveralOrWithAQuarantineUseExtend) {
    expect_script(detail::scripts::extend,
                  {
                      {.variant = "several",
                       .resources = {"a", "b"},
                       .command = extend,
                       .words = {"2", "a", "b", owner, "2", "10000", ""}},
                      {.variant = "a quarantine",
                       .resources = {"a"},
                       .command = extend,
                       .to = with_quarantine,
                       .words = {"2", "a", "redlock:since", owner, "1", "10000", "3600000000"}},
                      {.variant = "several, a quarantine",
                       .resources = {"a", "b", "{x}"},
                       .command = extend,
                       .to = with_quarantine,
                       .words = {"4", "a", "b", "{x}", "redlock:since", owner, "3", "10000", "3600000000"}},
                  });
}

// ---- Fencing. A counter is kept for a day, and for two quarantines more.

TEST(CommandBytes, OfAFencedAcquireUseAcquire) {
    expect_script(
        detail::scripts::acquire,
        {
            {.variant = "one",
             .resources = {"a"},
             .command = count,
             .words = {"2", "a", "{a}:fence", owner, "1", "10000", "", "86400000", ""}},
            {.variant = "a quarantine",
             .resources = {"a"},
             .command = count,
             .to = with_quarantine,
             .words = {"3", "a", "{a}:fence", "redlock:since", owner, "1", "10000", "", "93600000",
                       "3600000000"}},
            {.variant = "several",
             .resources = {"a", "b"},
             .command = count,
             .words = {"4", "a", "b", "{a}:fence", "{b}:fence", owner, "2", "10000", "", "86400000", ""}},
            {.variant = "several, the longest quarantine",
             .resources = {"a", "b"},
             .command = count,
             .to = {.quarantine = 876'600h},
             .words = {"5", "a", "b", "{a}:fence", "{b}:fence", "redlock:since", owner, "2", "10000", "",
                       "6311606400000", "3155760000000000"}},
            {.variant = "names with braces",
             .resources = {"a{1}", "{x}"},
             .command = count,
             .words = {"4", "a{1}", "{x}", "a{1}:fence", "{x}:tag-fence", owner, "2", "10000", "", "86400000",
                       ""}},
            {.variant = "the first attempt of a fair lock",
             .resources = {"a"},
             .command = count,
             .queue = QueueTerms{.reservation_ttl = 100ms},
             .words = {"2", "a", "{a}:fence", owner, "1", "10000", "", "86400000", ""}},
            {.variant = "a waiter's, but the user may not use queues",
             .resources = {"a"},
             .command = count,
             .queue = QueueTerms{.ticket = ticket, .reservation_ttl = 100ms},
             .to = without_queues,
             .words = {"2", "a", "{a}:fence", owner, "1", "10000", "", "86400000", ""}},
        });
}

TEST(CommandBytes, OfTheSecondRoundOfFencingUseRaiseCounts) {
    expect_script(
        detail::scripts::raise_counts,
        {
            {.variant = "one",
             .resources = {"a"},
             .command = raise_to,
             .words = {"2", "a", "{a}:fence", owner, "1", "1760000000123456", "86400000", ""}},
            {.variant = "a quarantine",
             .resources = {"a"},
             .command = raise_to,
             .to = with_quarantine,
             .words = {"3", "a", "{a}:fence", "redlock:since", owner, "1", "1760000000123456", "93600000",
                       "3600000000"}},
            {.variant = "several",
             .resources = {"a", "b"},
             .command = raise_to,
             .words = {"4", "a", "b", "{a}:fence", "{b}:fence", owner, "2", "1760000000123456", "86400000",
                       ""}},
            {.variant = "several, a quarantine",
             .resources = {"a", "{b}"},
             .command = raise_to,
             .to = with_quarantine,
             .words = {"5", "a", "{b}", "{a}:fence", "{b}:tag-fence", "redlock:since", owner, "2",
                       "1760000000123456", "93600000", "3600000000"}},
            {.variant = "the largest number that a script can tell from its neighbours",
             .resources = {"a"},
             .command = {.verb = Verb::raise_count, .owner = owner, .ttl = 10s, .fence = 1ULL << 53U},
             .words = {"2", "a", "{a}:fence", owner, "1", "9007199254740992", "86400000", ""}},
        });
}

// ---- Releases. They need no vote, and so no marker.

TEST(CommandBytes, OfAReleaseUseTheScriptOfTheSpecification) {
    expect_script(detail::scripts::compare_and_delete,
                  {
                      {.variant = "one", .resources = {"a"}, .command = release, .words = {"1", "a", owner}},
                      {.variant = "a quarantine",
                       .resources = {"{\0}\n"s},
                       .command = release,
                       .to = with_quarantine,
                       .words = {"1", "{\0}\n"s, owner}},
                      {.variant = "a fair one, but the user may not use queues",
                       .resources = {"a"},
                       .command = release,
                       .queue = QueueTerms{.reservation_ttl = 100ms},
                       .to = without_queues,
                       .words = {"1", "a", owner}},
                  });
}

TEST(CommandBytes, OfAReleaseOfSeveralUseRelease) {
    expect_script(detail::scripts::release, {
                                                {.variant = "two",
                                                 .resources = {"a", "b"},
                                                 .command = release,
                                                 .words = {"2", "a", "b", owner, "2", "", "", "", ""}},
                                                {.variant = "a quarantine",
                                                 .resources = {"a", "b", "{c}"},
                                                 .command = release,
                                                 .to = with_quarantine,
                                                 .words = {"3", "a", "b", "{c}", owner, "3", "", "", "", ""}},
                                                {.variant = "a fair one, but the user may not use queues",
                                                 .resources = {"a", "b"},
                                                 .command = release,
                                                 .queue = QueueTerms{.reservation_ttl = 100ms},
                                                 .to = without_queues,
                                                 .words = {"2", "a", "b", owner, "2", "", "", "", ""}},
                                            });
}

TEST(CommandBytes, OfAReleaseWithinTheMinimumHoldTimeUseRelease) {
    expect_script(detail::scripts::release,
                  {
                      {.variant = "one",
                       .resources = {"a"},
                       .command = early_release,
                       .words = {"1", "a", owner, "1", "2500", "", "", ""}},
                      {.variant = "one millisecond is left",
                       .resources = {"a"},
                       .command = {.verb = Verb::compare_and_delete, .owner = owner, .hold_remaining = 1ms},
                       .words = {"1", "a", owner, "1", "1", "", "", ""}},
                      {.variant = "a quarantine",
                       .resources = {"{a}"},
                       .command = early_release,
                       .to = with_quarantine,
                       .words = {"1", "{a}", owner, "1", "2500", "", "", ""}},
                      {.variant = "a fair one, which wakes nobody",
                       .resources = {"a"},
                       .command = early_release,
                       .queue = QueueTerms{.reservation_ttl = 100ms},
                       .words = {"1", "a", owner, "1", "2500", "", "", ""}},
                      {.variant = "several",
                       .resources = {"a", "b", "c"},
                       .command = early_release,
                       .words = {"3", "a", "b", "c", owner, "3", "2500", "", "", ""}},
                  });
}

}  // namespace
}  // namespace redlock::test

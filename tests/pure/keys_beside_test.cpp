// The bytes of the commands that use keys beside a resource: queues, readers, descriptions, counters; and the
// names of these keys for every form that the name of a resource can have.
#include "encoded_commands.hpp"

namespace redlock::test::keys_beside_test {
namespace {

const Command acquire{.verb = Verb::set_if_absent, .owner = owner, .ttl = 10s};
const Command count{.verb = Verb::set_and_count, .owner = owner, .ttl = 10s};
const Command release{.verb = Verb::compare_and_delete, .owner = owner};
const Command query{.verb = Verb::query};

Command of_reader(Command command) {
    command.shared = true;
    return command;
}

// ---- The queue

TEST(CommandBytes, OfAnEntryIntoTheQueueUseEnterQueue) {
    const Command enter{.verb = Verb::enter_queue, .owner = ticket};
    expect_script(
        detail::scripts::enter_queue,
        {
            {"the first question", "a", enter, waiter, any_node, "2 a {a}:queue @ticket 100 0 5000 1 ''"},
            {"a later question, of a waiter that may not be given the resource", "a", enter,
             QueueTerms{.ticket = ticket, .reservation_ttl = 250ms, .waited = 1'234'567us, .may_take = false},
             any_node, "2 a {a}:queue @ticket 250 1234567 5000 0 ''"},
            {"a new ticket in place of a former one", "a", enter,
             QueueTerms{.ticket = ticket, .reservation_ttl = 100ms, .former = "redlock:wake:1|6"}, any_node,
             "2 a {a}:queue @ticket 100 0 5000 1 redlock:wake:1|6"},
            {"a quarantine", "{x}", enter,
             QueueTerms{.ticket = ticket, .reservation_ttl = 100ms, .waited = 1us}, with_quarantine,
             "2 {x} {x}:tag-queue @ticket 100 1 5000 1 ''"},
            {"a binary name", Words{"\0\n"s}, enter, waiter, any_node,
             Words{"2", "\0\n"s, "{\0\n}:queue"s, ticket, "100", "0", "5000", "1", ""}},
        });
}

TEST(CommandBytes, OfAnAttemptOfAWaiterUseAcquire) {
    expect_script(detail::scripts::acquire,
                  {
                      {"plain", "a", acquire, waiter, any_node, "2 a {a}:queue @owner 1 10000 @ticket '' ''"},
                      {"a quarantine", "a{1}", acquire, waiter, with_quarantine,
                       "3 a{1} a{1}:queue redlock:since @owner 1 10000 @ticket '' 3600000000"},
                  });
}

TEST(CommandBytes, OfAFencedAttemptOfAWaiterUseAcquire) {
    expect_script(
        detail::scripts::acquire,
        {
            {"plain", "a", count, waiter, any_node,
             "3 a {a}:queue {a}:fence @owner 1 10000 @ticket 86400000 ''"},
            {"a quarantine", "{x}", count, waiter, with_quarantine,
             "4 {x} {x}:tag-queue {x}:tag-fence redlock:since @owner 1 10000 @ticket 93600000 3600000000"},
        });
}

TEST(CommandBytes, OfAReleaseOfAFairLockUseRelease) {
    expect_script(
        detail::scripts::release,
        {
            {"of one resource", "a", release, fair, any_node, "2 a {a}:queue @owner 1 '' '' 100 1"},
            {"of one resource, repeated", "a", release,
             QueueTerms{.reservation_ttl = 250ms, .only_passes_on = true}, any_node,
             "2 a {a}:queue @owner 1 '' '' 250 ''"},
            {"of one resource, by a waiter that leaves the queue", "a",
             Command{.verb = Verb::compare_and_delete, .owner = ticket},
             QueueTerms{.ticket = ticket, .reservation_ttl = 100ms, .only_passes_on = true}, any_node,
             "2 a {a}:queue @ticket 1 '' @ticket 100 ''"},
            {"of one resource, with a quarantine", "{x}", release, fair, with_quarantine,
             "2 {x} {x}:tag-queue @owner 1 '' '' 100 1"},
            {"of several", "a b", release, fair, any_node, "4 a b {a}:queue {b}:queue @owner 2 '' '' 100 1"},
            {"of several, repeated", "a b{1}", release,
             QueueTerms{.reservation_ttl = 250ms, .only_passes_on = true}, any_node,
             "4 a b{1} {a}:queue b{1}:queue @owner 2 '' '' 250 ''"},
            {"of several, with a quarantine", "a b c", release, fair, with_quarantine,
             "6 a b c {a}:queue {b}:queue {c}:queue @owner 3 '' '' 100 1"},
        });
}

// ---- Readers

TEST(CommandBytes, OfAReaderUseTheScriptsForReaders) {
    const auto extend = of_reader({.verb = Verb::compare_and_expire, .owner = owner, .ttl = 10s});
    const auto raise_to =
        of_reader({.verb = Verb::raise_count, .owner = owner, .fence = 1'760'000'000'123'456});
    expect_script(
        detail::scripts::reader_acquire,
        {
            {"plain", "a", of_reader(acquire), no_queue, any_node, "2 a {a}:readers @owner 1 10000 '' ''"},
            {"a quarantine", "{x}", of_reader(acquire), no_queue, with_quarantine,
             "3 {x} {x}:tag-readers redlock:since @owner 1 10000 '' 3600000000"},
        });
    expect_script(detail::scripts::reader_extend,
                  {
                      {"plain", "a", extend, no_queue, any_node, "2 a {a}:readers @owner 1 10000 ''"},
                      {"a quarantine", "a{1}", extend, no_queue, with_quarantine,
                       "3 a{1} a{1}:readers redlock:since @owner 1 10000 3600000000"},
                  });
    expect_script(detail::scripts::reader_release,
                  {
                      {"plain", "a", of_reader(release), no_queue, any_node, "2 a {a}:readers @owner"},
                      {"a quarantine", Words{"\n\0"s}, of_reader(release), no_queue, with_quarantine,
                       Words{"2", "\n\0"s, "{\n\0}:readers"s, owner}},
                  });
    expect_script(
        detail::scripts::reader_acquire,
        {
            {"plain", "a", of_reader(count), no_queue, any_node,
             "3 a {a}:readers {a}:fence @owner 1 10000 86400000 ''"},
            {"a quarantine", "{x}", of_reader(count), no_queue, with_quarantine,
             "4 {x} {x}:tag-readers {x}:tag-fence redlock:since @owner 1 10000 93600000 3600000000"},
        });
    expect_script(
        detail::scripts::reader_raise_counts,
        {
            {"plain", "a", raise_to, no_queue, any_node,
             "3 a {a}:readers {a}:fence @owner 1 1760000000123456 86400000 ''"},
            {"a quarantine", "a", raise_to, no_queue, with_quarantine,
             "4 a {a}:readers {a}:fence redlock:since @owner 1 1760000000123456 93600000 3600000000"},
        });
}

// ---- Descriptions and queries

TEST(CommandBytes, OfAHolderDescriptionUseDescribeHolder) {
    const auto describe = [](std::string_view text, std::chrono::milliseconds ttl = 10s) {
        return Command{.verb = Verb::describe_holder, .owner = owner, .ttl = ttl, .description = text};
    };
    static const std::string longest(1000, 'x');
    expect_script(
        detail::scripts::describe_holder,
        {
            {"one", "a", describe("host=web1 pid=7"), no_queue, any_node,
             Words{"2", "a", "{a}:holder", owner, "host=web1 pid=7"}},
            {"after the release", "a", describe("host=web1 pid=7", 0ms), no_queue, any_node,
             Words{"2", "a", "{a}:holder", owner, ""}},
            {"several, a binary description", "a {x} b{1}", describe({"\0\r\n\xFF", 4}), no_queue, any_node,
             Words{"6", "a", "{x}", "b{1}", "{a}:holder", "{x}:tag-holder", "b{1}:holder", owner,
                   "\0\r\n\xFF"s}},
            {"the longest, a quarantine, and the user may not use queues", "a", describe(longest), no_queue,
             Recipient{.quarantine = 1h, .allows_queue = false},
             Words{"2", "a", "{a}:holder", owner, longest}},
        });
}

TEST(CommandBytes, OfAQueryContainOnlyTheKeysThatTheUserMayRead) {
    expect_script(
        detail::scripts::query,
        {
            {"all", "a", query, no_queue, any_node, "5 a {a}:queue {a}:holder {a}:readers {a}:fence"},
            {"a quarantine", "a", query, no_queue, with_quarantine,
             "5 a {a}:queue {a}:holder {a}:readers {a}:fence"},
            {"the user may not use queues", "{x}", query, no_queue, without_queues, "1 {x}"},
        });
}

TEST(CommandBytes, OfAQueryOfSlotsUseExist) {
    const Words slots{"{pool}:slot:0", "{pool}:slot:1", "{pool}:slot:2"};
    const Words words{"3", "{pool}:slot:0", "{pool}:slot:1", "{pool}:slot:2"};
    expect_script(detail::scripts::exist,
                  {
                      {"three slots", slots, Command{.verb = Verb::exist}, {}, {}, words},
                      {"the user may not use queues", slots, Command{.verb = Verb::exist}, no_queue,
                       Recipient{.quarantine = 1h, .allows_queue = false}, words},
                  });
}

// ---- Names. Redis Cluster hashes what stands between the first brace and the next closing one, unless that
// is empty; then it hashes the whole name. A name in braces has keys of its own, because otherwise they would
// be those of the name without them.

TEST(AuxiliaryKeys, HaveTheHashTagOfTheResource) {
    const auto names = [](const char* variant, const std::string& resource, const std::string& stem) {
        expect_script(
            detail::scripts::query,
            {{variant, Words{resource}, query, no_queue, any_node,
              Words{"5", resource, stem + "queue", stem + "holder", stem + "readers", stem + "fence"}}});
    };
    names("no brace", "x", "{x}:");
    names("colons and blanks", "a: b", "{a: b}:");
    names("a slot", "{s}:slot:3", "{s}:slot:3:");
    names("a tag at the end", "a{1}", "a{1}:");
    names("a tag at the beginning", "{1}a", "{1}a:");
    names("a tag inside", "a{1}b", "a{1}b:");
    names("two tags inside", "a{1}b{2}c", "a{1}b{2}c:");
    names("in braces", "{x}", "{x}:tag-");
    names("two in braces", "{a}{b}", "{a}{b}:tag-");
    names("braces in braces", "{{x}}", "{{x}}:");
    names("a tag in braces", "{{a}b}", "{{a}b}:");
    names("opening braces in braces", "{{x}", "{{x}:tag-");
    names("closing braces in braces", "{x}}", "{x}}:tag-");
    names("empty braces", "{}", "{{}}:");
    names("empty braces first", "{}a", "{{}a}:");
    names("empty braces before a tag", "{}{a}", "{{}{a}}:");
    names("a tag before empty braces", "{a}{}", "{a}{}:tag-");
    names("only an opening brace", "{", "{{}:");
    names("only a closing brace", "}", "{}}:");
    names("never closed", "a{b", "{a{b}:");
    names("never opened", "a}b", "{a}b}:");
    names("the wrong way round", "}a{", "{}a{}:");
    names("a closing brace before a tag", "}{a}", "}{a}:");
    names("a zero byte", "a\0b"s, "{a\0b}:"s);
    names("a zero byte in braces", "{\0}"s, "{\0}:tag-"s);
    names("the end of a line", "\r\n", "{\r\n}:");
    names("other bytes", "\xFF{\x01}", "\xFF{\x01}:");
}

}  // namespace
}  // namespace redlock::test::keys_beside_test

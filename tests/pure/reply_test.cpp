// What a reply of a server means as a vote (rules A7, D6, D7), and which of its words a report shows.
#include <redlock/detail/reply.hpp>

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace redlock::detail {
namespace {

using Kind = Reply::Kind;

Reply status(std::string text) {
    return {.kind = Kind::status, .text = std::move(text)};
}
Reply error(std::string text) {
    return {.kind = Kind::error, .text = std::move(text)};
}
Reply integer(long long value) {
    return {.kind = Kind::integer, .integer = value};
}
Reply text(std::string words) {
    return {.kind = Kind::text, .text = std::move(words)};
}
const Reply nil{.kind = Kind::nil};

struct Row {
    Verb verb;
    bool scripted;
    Reply reply;
    detail::NodeVote vote;
};

void PrintTo(const Row& row, std::ostream* out) {
    *out << "verb " << static_cast<int>(row.verb) << (row.scripted ? ", script" : "") << ", reply of kind "
         << static_cast<int>(row.reply.kind) << " " << row.reply.integer << " " << row.reply.text;
}

constexpr auto set = Verb::set_if_absent;
constexpr auto expire = Verb::compare_and_expire;
constexpr auto erase = Verb::compare_and_delete;
const detail::NodeVote granted{Vote::granted};
const detail::NodeVote refused{Vote::refused};

detail::NodeVote granted_as(std::uint64_t count) {
    return {Vote::granted, {}, count};
}
detail::NodeVote refused_as(std::uint64_t count) {
    return {Vote::refused, {}, count};
}
detail::NodeVote unknown(Errc cause) {
    return {Vote::unknown, cause};
}
detail::NodeVote strange() {
    return unknown(Errc::unexpected_reply);
}

struct ToVote : testing::TestWithParam<Row> {};

// Only the status OK grants a plain SET, only nil refuses it.
INSTANTIATE_TEST_SUITE_P(
    OfAPlainSet, ToVote,
    testing::Values(Row{set, false, status("OK"), granted}, Row{set, false, nil, refused},
                    Row{set, false, status("QUEUED"), strange()}, Row{set, false, status("OKAY"), strange()},
                    Row{set, false, text("OK"), strange()}, Row{set, false, integer(1), strange()},
                    Row{set, false, integer(0), strange()}, Row{set, false, status("QUARANTINED"), strange()},
                    Row{set, false, {.kind = Kind::list}, strange()}, Row{set, false, {}, strange()}));

INSTANTIATE_TEST_SUITE_P(
    OfAScript, ToVote,
    testing::Values(Row{set, true, integer(1), granted}, Row{set, true, integer(0), refused},
                    Row{expire, true, integer(1), granted}, Row{expire, true, integer(0), refused},
                    Row{erase, true, integer(1), granted}, Row{erase, true, integer(0), refused},
                    Row{erase, true, integer(2), strange()}, Row{expire, true, integer(-1), strange()},
                    Row{expire, true, status("OK"), strange()}, Row{expire, true, nil, strange()},
                    Row{expire, true, text("1"), strange()}));

INSTANTIATE_TEST_SUITE_P(OfACount, ToVote,
                         testing::Values(Row{Verb::set_and_count, true, integer(7), granted_as(7)},
                                         Row{Verb::set_and_count, true, integer(1), granted_as(1)},
                                         Row{Verb::set_and_count, true, integer(0), refused},
                                         Row{Verb::set_and_count, true, integer(-7), strange()},
                                         Row{Verb::raise_count, true, integer(1), granted},
                                         Row{Verb::raise_count, true, integer(0), refused},
                                         Row{Verb::raise_count, true, integer(-7), refused_as(7)},
                                         Row{Verb::raise_count, true, integer(7), strange()},
                                         Row{Verb::raise_count, true,
                                             integer(std::numeric_limits<long long>::min()),
                                             refused_as(std::uint64_t{1} << 63U)}));

// An error is never a refusal: whoever holds the resource is not known.
INSTANTIATE_TEST_SUITE_P(
    OfAnError, ToVote,
    testing::Values(
        Row{set, false, error("NOAUTH Authentication required."), unknown(Errc::authentication_failed)},
        Row{set, false, error("WRONGPASS invalid"), unknown(Errc::authentication_failed)},
        Row{set, false, error("NOPERM no"), unknown(Errc::permission_denied)},
        Row{expire, true, error("ERR ... ACL failure in script: User"), unknown(Errc::permission_denied)},
        Row{expire, true, error("ERR The user can't run this command"), unknown(Errc::permission_denied)},
        Row{set, false, error("READONLY You can't"), unknown(Errc::read_only)},
        Row{set, false, error("LOADING Redis is"), unknown(Errc::loading)},
        Row{set, false, error("OOM command not"), unknown(Errc::out_of_memory)},
        Row{set, false, error("WRONGTYPE Operation"), unknown(Errc::wrong_type)},
        Row{set, false, error("BUSY Redis is"), unknown(Errc::server_busy)},
        Row{set, false, error("TRYAGAIN"), unknown(Errc::server_busy)},
        Row{set, false, error("MASTERDOWN"), unknown(Errc::server_busy)},
        Row{set, false, error("CLUSTERDOWN"), unknown(Errc::server_busy)},
        Row{set, false, error("MISCONF"), unknown(Errc::server_busy)},
        Row{set, false, error("NOREPLICAS"), unknown(Errc::server_busy)},
        Row{expire, true, error("NOSCRIPT No matching"), unknown(Errc::server_error)},
        Row{set, false, error("MOVED 42 10.0.0.1:6379"), unknown(Errc::server_error)},
        Row{set, false, error("LOADINGS are not LOADING"), unknown(Errc::server_error)},
        Row{set, false, error("ERR OOM is not the first word"), unknown(Errc::server_error)},
        Row{set, false, error(""), unknown(Errc::server_error)}));

INSTANTIATE_TEST_SUITE_P(OfAQuarantine, ToVote,
                         testing::Values(Row{set, true, status("QUARANTINED for another 5 ms"),
                                             unknown(Errc::quarantined)},
                                         Row{set, true, error("QUARANTINED"), unknown(Errc::server_error)}));

TEST_P(ToVote, IsAsTheTableSays) {
    const auto& row = GetParam();
    const auto vote = to_vote({.verb = row.verb}, row.reply, row.scripted);
    EXPECT_EQ(vote.vote, row.vote.vote);
    EXPECT_EQ(vote.cause, row.vote.cause) << vote.cause.message();
    EXPECT_EQ(vote.count, row.vote.count);
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

TEST(PrintableWords, AreOneLineAndNotTooLong) {
    EXPECT_EQ(printable("ERR two\r\nlines \x1B[31m\xC3\xA9"), "ERR two??lines ?[31m??");
    EXPECT_EQ(printable(std::string(120, 'x')), std::string(120, 'x'));
    EXPECT_EQ(printable(std::string(121, 'x')), std::string(120, 'x') + "...");
}

}  // namespace
}  // namespace redlock::detail

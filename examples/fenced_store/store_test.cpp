// What the store guarantees if a holder comes too late: with one process, and with several.
#include "store.hpp"

#include "forked_child.hpp"
#include "support/temporary_directory.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

namespace fenced_store {
namespace {

using redlock::support::TemporaryDirectory;
using redlock::support::wait_until;
using redlock::test::ForkedChild;
using testing::HasSubstr;
using testing::Optional;

constexpr auto* row = "account:7";

MATCHER_P(AcceptedAs, fencing_token, "") {
    return arg.accepted && arg.newest_fencing_token == static_cast<std::uint64_t>(fencing_token);
}
MATCHER_P(RefusedBy, newest, "") {
    return !arg.accepted && arg.newest_fencing_token == static_cast<std::uint64_t>(newest);
}

/// Returns the message of the exception that `action` throws.
template <class Action>
std::string complaint(Action action) {
    try {
        action();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "no complaint";
}

struct FencedStore : testing::Test {
    TemporaryDirectory directory{};
    std::filesystem::path file = directory / "rows.db";
};

// A holder may write twice, so an equal token is accepted.
TEST_F(FencedStore, AcceptsATokenThatIsNotOlder) {
    Store store{file};
    for (const std::uint64_t token : {7U, 7U, 9U}) {
        EXPECT_THAT(store.write(row, std::to_string(token), token), AcceptedAs(token));
        EXPECT_THAT(store.read_unfenced(row), Optional(std::to_string(token)));
    }
}

TEST_F(FencedStore, RejectsAnOlderTokenAndChangesNothing) {
    Store store{file};
    EXPECT_THAT(store.write(row, "of the later holder", 9), AcceptedAs(9));
    EXPECT_THAT(store.write(row, "of the earlier holder", 8), RefusedBy(9));
    EXPECT_THAT(store.read_unfenced(row), Optional(std::string{"of the later holder"}));
    EXPECT_THAT(store.write(row, "again", 9), AcceptedAs(9));  // the refused access did not change the token
}

// A reads with token 5 and pauses, B reads with token 6, A writes, and B writes a value that it computed from
// what it had read. If the store accepted the write of A, it would be lost.
TEST_F(FencedStore, RejectsAWriteThatIsOlderThanTheNewestRead) {
    Store store{file};
    store.write_unfenced(row, "100");
    EXPECT_THAT(store.read(row, 5).content, Optional(std::string{"100"}));
    EXPECT_THAT(store.read(row, 6).content, Optional(std::string{"100"}));
    EXPECT_THAT(store.write(row, "110, by A", 5), RefusedBy(6));
    EXPECT_THAT(store.write(row, "150, by B", 6), AcceptedAs(6));
    EXPECT_THAT(store.read_unfenced(row), Optional(std::string{"150, by B"}));
}

TEST_F(FencedStore, RejectsAnOlderRead) {
    Store store{file};
    EXPECT_THAT(store.write(row, "of the later holder", 9), AcceptedAs(9));
    const auto late = store.read(row, 8);
    EXPECT_THAT(late, RefusedBy(9));
    EXPECT_EQ(late.content, std::nullopt);
}

TEST_F(FencedStore, RemembersTheReadOfARowThatWasNeverWritten) {
    Store store{file};
    const auto first = store.read(row, 6);
    EXPECT_THAT(first, AcceptedAs(6));
    EXPECT_EQ(first.content, std::nullopt);
    EXPECT_THAT(store.write(row, "late", 5), RefusedBy(6));
    EXPECT_EQ(store.read_unfenced(row), std::nullopt);
}

TEST_F(FencedStore, StillRejectsAfterTheFileIsReopened) {
    EXPECT_THAT(Store{file}.write(row, "of the later holder", 9), AcceptedAs(9));
    EXPECT_THAT(Store{file}.write(row, "of the earlier holder", 8), RefusedBy(9));
    Store reopened{file};
    EXPECT_THAT(reopened.write(row, "of the earlier holder", 8), RefusedBy(9));
    EXPECT_THAT(reopened.read_unfenced(row), Optional(std::string{"of the later holder"}));
}

TEST_F(FencedStore, HasSeparateTokensForDifferentRows) {
    Store store{file};
    EXPECT_THAT(store.write("account:7", "seven", 9), AcceptedAs(9));
    EXPECT_THAT(store.write("account:8", "eight", 3), AcceptedAs(3));
    EXPECT_THAT(store.write("account:7", "late", 8), RefusedBy(9));
    EXPECT_THAT(store.write("account:8", "late", 2), RefusedBy(3));
    EXPECT_THAT(store.read_unfenced("account:7"), Optional(std::string{"seven"}));
    EXPECT_THAT(store.read_unfenced("account:8"), Optional(std::string{"eight"}));
}

TEST_F(FencedStore, StoresAnyBytesUnchanged) {
    Store store{file};
    const std::string odd{"it's; --\n\0\xff", 11};
    EXPECT_THAT(store.write(odd, odd, 1), AcceptedAs(1));
    EXPECT_THAT(store.read_unfenced(odd), Optional(odd));
    EXPECT_THAT(store.write("", "", 1), AcceptedAs(1));
    EXPECT_THAT(store.read_unfenced(""), Optional(std::string{}));
}

// An unfenced write compares no tokens, and keeps the newest token of the row.
TEST_F(FencedStore, AcceptsUnfencedWritesAndKeepsTheNewestToken) {
    Store store{file};
    EXPECT_THAT(store.write(row, "of the later holder", 9), AcceptedAs(9));
    store.write_unfenced(row, "of anybody");
    EXPECT_THAT(store.read_unfenced(row), Optional(std::string{"of anybody"}));
    EXPECT_THAT(store.write(row, "of the earlier holder", 8), RefusedBy(9));
}

TEST_F(FencedStore, ReportsAnInvalidToken) {
    Store store{file};
    EXPECT_THAT(complaint([&] { (void)store.write(row, "x", 0); }), HasSubstr("fencing_token is 0"));
    EXPECT_THAT(complaint([&] { (void)store.write(row, "x", std::numeric_limits<std::uint64_t>::max()); }),
                HasSubstr("fencing_token is 18446744073709551615"));
    EXPECT_EQ(store.read_unfenced(row), std::nullopt);
}

// ---- Files that are no database, or that we must not write

TEST_F(FencedStore, ReportsAFileThatIsNoDatabase) {
    const auto missing = directory / "no" / "such" / "directory.db";
    EXPECT_THAT(complaint([&] { Store{missing}; }), HasSubstr(missing.string() + ": unable to open"));
    std::ofstream{file} << std::string(4096, 'x');
    EXPECT_THAT(complaint([&] { Store{file}; }), HasSubstr(file.string() + ": file is not a database"));
}

// The child runs as a user to whom the file is read-only, because root could write it all the same.
TEST_F(FencedStore, ReportsAFileThatIsNotWritable) {
    EXPECT_THAT(Store{file}.write(row, "content", 1), AcceptedAs(1));
    ASSERT_EQ(::chmod(file.c_str(), 0444), 0);
    ASSERT_EQ(::chmod(directory.path().c_str(), 0555), 0);
    ForkedChild child{[&](auto say) {
        if (::geteuid() == 0 && ::setuid(65'534) != 0) say("setuid");
        say(complaint([&] { Store{file}; }));
    }};
    EXPECT_EQ(child.receive(), "store " + file.string() + ": the file is not writable");
    ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
}

// ---- Other processes. They are forked before this process opens the file, because connections of SQLite do
// not survive a fork().

/// Returns true if the process sleeps (state S, see proc(5)), as SQLite does between two attempts to lock the
/// file.
bool sleeps(const std::string& pid) {
    std::ifstream stat{"/proc/" + pid + "/stat"};
    std::string text;
    std::getline(stat, text);
    const auto end_of_name = text.rfind(')');
    return end_of_name != std::string::npos && text.compare(end_of_name + 1, 3, " S ") == 0;
}

void touch(const std::filesystem::path& path) {
    std::ofstream created{path};
}

void wait_for(const std::filesystem::path& path) {
    if (!wait_until([&] { return std::filesystem::exists(path); })) throw std::runtime_error(path.string());
}

TEST_F(FencedStore, WaitsForAWriteUnderWayAndSeesItsToken) {
    ForkedChild late{[&](auto say) {
        wait_for(directory / "go");
        Store store{file};
        say(std::to_string(::getpid()));
        const auto answer = store.write(row, "of the earlier holder", 8);
        say((answer ? "accepted, " : "refused, ") + std::to_string(answer.newest_fencing_token));
    }};
    Store store{file};
    sqlite3* other = nullptr;  // another program, in the middle of a transaction
    const auto run = [&](const char* sql) {
        EXPECT_EQ(::sqlite3_exec(other, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    };
    EXPECT_EQ(::sqlite3_open(file.c_str(), &other), SQLITE_OK);
    run("BEGIN IMMEDIATE; INSERT INTO rows VALUES ('account:7', 'of the later holder', 9)");
    touch(directory / "go");
    const auto pid = late.receive();
    ASSERT_TRUE(wait_until([&] { return sleeps(pid); })) << pid;
    run("COMMIT");
    ::sqlite3_close(other);
    EXPECT_EQ(late.receive(), "refused, 9");
    EXPECT_EQ(late.wait(), 0);
    EXPECT_THAT(store.read_unfenced(row), Optional(std::string{"of the later holder"}));
}

// Two processes write at the same time, one with the odd and one with the even tokens. The content of the row
// never goes back to that of an older token.
TEST_F(FencedStore, TokensNeverDecreaseWhileTwoProcessesWrite) {
    constexpr std::uint64_t last = 200;
    const auto writer = [&](std::uint64_t first) {
        return [&, first](auto say) {
            wait_for(directory / "go");
            Store store{file};
            for (auto fencing_token = first; fencing_token <= last; fencing_token += 2)
                (void)store.write(row, std::to_string(fencing_token), fencing_token);
            say("done");
        };
    };
    ForkedChild odd{writer(1)};
    ForkedChild even{writer(2)};
    Store store{file};
    touch(directory / "go");
    int newest = 0;
    const auto looks = [&] {
        const auto now = std::stoi(store.read_unfenced(row).value_or("0"));
        EXPECT_GE(now, newest);
        newest = now;
        return newest == last;
    };
    EXPECT_TRUE(wait_until(looks, std::chrono::seconds{40}));
    EXPECT_EQ(odd.receive(), "done");
    EXPECT_EQ(even.receive(), "done");
}

}  // namespace
}  // namespace fenced_store

// Output into a pipe without a reader, or into a file that may not grow. The command must not die of SIGPIPE
// or SIGXFSZ while it has a lock, because the lock would stay for a whole ttl. It must do the same as with a
// full device.
#include "live/forked_child.hpp"
#include "tool_world.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace redlock::test::broken_pipe_live_test {
namespace {

/// Opens an output that takes nothing: the writing end of a pipe without a reader.
int open_broken_pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return -1;
    ::close(ends[0]);
    return ends[1];
}

int open_full_device() {
    return ::open("/dev/full", O_WRONLY);
}

/// Opens a file at its end, and forbids this process files that are larger.
int open_file_of_the_largest_size() {
    constexpr rlim_t largest = 1024 * 1024;
    const int file = ::memfd_create("output", MFD_CLOEXEC);
    if (::lseek(file, largest, SEEK_SET) < 0) return -1;
    const rlimit limit{largest, largest};
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? file : -1;
}

class OutputThatTakesNothing : public testing::TestWithParam<int (*)()> {
protected:
    /// Starts `redlock` with this output in place of one stream. The other stream is the file "other".
    ForkedChild start(int stream, std::vector<std::string> words) {
        words.insert(words.begin(), REDLOCK_TOOL);
        words.insert(words.begin() + 2, {"--node-timeout", "2s"});
        return ForkedChild{[&](auto) {
            const int other = stream == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO;
            ::dup2(::creat(world.file("other").c_str(), 0600), other);
            ::dup2(GetParam()(), stream);
            execute(words, world.environment());
        }};
    }

    ToolWorld world{3};
};

TEST_P(OutputThatTakesNothing, OfAnAcquireReleasesTheLockAndIsAnError) {
    const auto process = std::to_string(::getpid());
    for (const auto& words : {std::vector<std::string>{"acquire", "job"},
                              {"acquire", "--json", "job"},
                              {"acquire", "--while-pid", process, "job"}}) {
        EXPECT_EQ(start(STDOUT_FILENO, words).wait(), 70) << testing::PrintToString(words);
        EXPECT_THAT(world.in("other"), HasSubstr("stdout takes nothing"));
        EXPECT_EQ(world.keys(), 0U) << testing::PrintToString(words);
    }
}

// The owner is printed on stdout, so the lock can be released.
TEST_P(OutputThatTakesNothing, ForTheMessagesOfAnAcquireChangesNothing) {
    EXPECT_EQ(start(STDERR_FILENO, {"acquire", "-v", "job"}).wait(), 0);
    EXPECT_THAT(world.in("other"), HasSubstr("owner="));
    EXPECT_EQ(world.keys(), 3U);
}

TEST_P(OutputThatTakesNothing, ForTheMessagesOfARunChangesNothing) {
    EXPECT_EQ(start(STDERR_FILENO, {"run", "-v", "job", "echo", "done"}).wait(), 0);
    EXPECT_EQ(world.in("other"), "done\n");
    EXPECT_EQ(world.keys(), 0U);
    EXPECT_EQ(start(STDERR_FILENO, {"run", "job", "no-such-program"}).wait(), 127);
    EXPECT_EQ(world.keys(), 0U);
}

// While too few nodes answer, the command says that it waits.
TEST_P(OutputThatTakesNothing, ForTheMessagesOfAWaitDoesNotEndTheWait) {
    world[0].kill();
    world[1].kill();
    auto command = start(STDERR_FILENO, {"run", "--retry-delay", "20ms", "job", "echo", "done"});
    EXPECT_TRUE(wait_until([&] { return calls(world[2], "set") > 10; }));
    world[0].restart();
    world[1].restart();
    EXPECT_EQ(command.wait(), 0);
    EXPECT_EQ(world.in("other"), "done\n");
}

INSTANTIATE_TEST_SUITE_P(Live, OutputThatTakesNothing,
                         testing::Values(open_broken_pipe, open_full_device, open_file_of_the_largest_size),
                         [](const auto& it) {
                             return it.param == open_broken_pipe   ? "APipeWithoutAReader"
                                    : it.param == open_full_device ? "AFullDevice"
                                                                   : "AFileOfTheLargestSize";
                         });

}  // namespace
}  // namespace redlock::test::broken_pipe_live_test

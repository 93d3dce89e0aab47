// Rule A6: the effects of a generator that fails. This program replaces getentropy() by a function that fails
// on demand.
#include "world.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>

namespace {

int failure = 0;  // the errno of the next calls; 0: success

}  // namespace

extern "C" int getentropy(void* bytes, std::size_t size) {
    if (failure != 0) {
        errno = failure;
        return -1;
    }
    return ::getrandom(bytes, size, 0) == static_cast<ssize_t>(size) ? 0 : -1;
}

namespace redlock::test::failing_entropy_test {
namespace {

struct FailingEntropy : testing::Test {
    void SetUp() override { failure = ENOSYS; }
    void TearDown() override { failure = 0; }
};

// A6. "Never a weaker value."
TEST_F(FailingEntropy, IsReportedWithTheErrorCodeOfTheSystem) {
    std::array<std::byte, 20> bytes{};
    EXPECT_EQ(os_entropy().fill(bytes), std::make_error_code(std::errc::function_not_supported));
    Owner owner;
    EXPECT_EQ(owner.draw(os_entropy()), std::make_error_code(std::errc::function_not_supported));
    EXPECT_TRUE(owner.empty());
}

// A6, A12. Without entropy there is no attempt, and the error is the code of the system.
TEST_F(FailingEntropy, FailsAnAcquireWithoutIo) {
    World world;
    Lock lock{world, the_resource, {}, world.clock};
    const auto result = lock.acquire();
    EXPECT_EQ(result.error(), std::make_error_code(std::errc::function_not_supported));
    EXPECT_EQ(result.attempts(), 0);
    EXPECT_THAT(result.nodes(), IsEmpty());
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_EQ(lock.owner(), "");
    failure = 0;
    EXPECT_THAT(lock.acquire(), Succeeds());
}

}  // namespace
}  // namespace redlock::test::failing_entropy_test

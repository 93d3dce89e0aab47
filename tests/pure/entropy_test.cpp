// Rule A6: an owner has all the entropy that was drawn, and consists of bytes that are safe in every reply.
#include "world.hpp"

#include <algorithm>
#include <array>

namespace redlock::test::entropy_test {
namespace {

std::string owner_from(Entropy& entropy) {
    Owner owner;
    EXPECT_FALSE(owner.draw(entropy));
    return std::string{owner.view()};
}

// A6, S6, S7. The owner is the 20 drawn bytes, in their order, as 40 hex digits.
TEST(AnOwner, IsTheDrawnBytesInHex) {
    for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
        SeededEntropy entropy{seed}, same{seed};
        std::array<std::byte, 20> bytes{};
        EXPECT_FALSE(same.fill(bytes));
        std::string expected;
        for (const auto byte : bytes)
            for (const auto digit : {byte >> 4, byte & std::byte{0xF}})
                expected += "0123456789abcdef"[std::to_integer<int>(digit)];
        EXPECT_EQ(owner_from(entropy), expected);
    }
}

// A6. If the generator fails, the object has no owner, not even the former one.
TEST(AnOwner, IsEmptyIfEntropyFails) {
    SeededEntropy entropy{1};
    Owner owner;
    EXPECT_TRUE(owner.empty()) << "it is not drawn yet";
    ASSERT_FALSE(owner.draw(entropy));
    entropy.dry_up_after(0);
    EXPECT_EQ(owner.draw(entropy), std::errc::io_error);
    EXPECT_TRUE(owner.empty());
    EXPECT_EQ(owner.view(), "");
}

TEST(OsEntropy, FillsAnySize) {
    for (const std::size_t size : {0U, 1U, 20U, 256U, 257U, 100'000U}) {
        std::vector<std::byte> bytes(size);
        EXPECT_FALSE(os_entropy().fill(bytes));
        const auto zeros = static_cast<std::size_t>(std::ranges::count(bytes, std::byte{}));
        EXPECT_LE(zeros, 4 + size / 64) << "all of it was filled";
    }
}

}  // namespace
}  // namespace redlock::test::entropy_test

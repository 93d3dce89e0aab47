// Rule A6: owners come from the entropy given, unweakened, and any byte is safe on the wire.
#include "world.hpp"

#include <algorithm>
#include <set>

namespace redlock::test {
namespace {

std::string owner_from(Entropy& entropy) {
    Owner owner;
    EXPECT_FALSE(owner.draw(entropy));
    return std::string{owner.view()};
}

// A6, S7. 20 bytes, written as hex.
TEST(AnOwner, Is40HexDigits) {
    SeededEntropy entropy{1};
    const auto owner = owner_from(entropy);
    EXPECT_THAT(owner, SizeIs(40));
    EXPECT_EQ(owner.find_first_not_of("0123456789abcdef"), std::string::npos);
}

// A6. Each byte as it was drawn, NUL and 0xff included.
TEST(AnOwner, SpellsEveryByte) {
    for (const unsigned byte : {0x00U, 0x0aU, 0x0fU, 0xa0U, 0xa5U, 0xffU}) {
        ConstantEntropy entropy{static_cast<unsigned char>(byte)};
        std::string expected;
        for (int i = 0; i < 20; ++i)
            expected += {"0123456789abcdef"[byte / 16], "0123456789abcdef"[byte % 16]};
        EXPECT_EQ(owner_from(entropy), expected);
    }
}

// A6. All 160 bits count: no digit stays the same over many draws.
TEST(AnOwner, VariesInEveryDigit) {
    SeededEntropy entropy{1};
    std::array<std::set<char>, 40> seen;
    for (int draw = 0; draw < 1'000; ++draw) {
        const auto owner = owner_from(entropy);
        for (std::size_t digit = 0; digit < 40; ++digit) seen[digit].insert(owner[digit]);
    }
    EXPECT_THAT(seen, Each(SizeIs(16)));
}

// A5, S6.
TEST(AnOwner, IsDifferentEachTime) {
    SeededEntropy entropy{1};
    std::set<std::string> owners;
    for (int draw = 0; draw < 1'000; ++draw) EXPECT_TRUE(owners.insert(owner_from(entropy)).second);
}

TEST(AnOwner, IsEmptyBeforeItIsDrawn) {
    EXPECT_TRUE(Owner{}.empty());
    EXPECT_EQ(Owner{}.view(), "");
}

// A6. A failing generator leaves no owner, and no former one either.
TEST(AnOwner, IsEmptyWhenEntropyFails) {
    SeededEntropy entropy{1};
    Owner owner;
    ASSERT_FALSE(owner.draw(entropy));
    entropy.dry_up_after(0);
    EXPECT_EQ(owner.draw(entropy), std::errc::io_error);
    EXPECT_TRUE(owner.empty());
    EXPECT_EQ(owner.view(), "");
}

// A6. The operating system's generator: never twice the same, no pattern a seed would leave.
TEST(OsEntropy, NeverRepeats) {
    std::set<std::string> owners;
    for (int draw = 0; draw < 1'000; ++draw) EXPECT_TRUE(owners.insert(owner_from(os_entropy())).second);
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
}  // namespace redlock::test

// The pause that doubles with each failure in a row.
#include "world.hpp"

#include "round/back_off.hpp"

namespace redlock::test::back_off_test {
namespace {

constexpr detail::BackOff back_off{.shortest = 10ms, .longest = 1s};

TEST(BackOff, DoublesThePauseUpToTheMaximum) {
    struct Row {
        int doublings;
        Clock::duration longest;
    };
    for (const auto& row :
         {Row{0, 10ms}, {1, 20ms}, {2, 40ms}, {6, 640ms}, {7, 1s}, {8, 1s}, {2'000'000'000, 1s}}) {
        ConstantEntropy least{0x00}, most{0xff};
        EXPECT_THAT(back_off.pause(row.doublings, least), Lasts(row.longest / 2)) << row.doublings;
        EXPECT_THAT(back_off.pause(row.doublings, most), LastsAbout(row.longest)) << row.doublings;
    }
}

TEST(BackOff, TreatsANegativeNumberOfDoublingsAsZero) {
    ConstantEntropy least{0x00};
    EXPECT_THAT(back_off.pause(-1, least), Lasts(5ms));
}

TEST(BackOff, NeverExceedsTheMaximumPause) {
    ConstantEntropy least{0x00};
    constexpr detail::BackOff odd{.shortest = 3s, .longest = 2s};
    EXPECT_THAT(odd.pause(0, least), Lasts(1s));
}

}  // namespace
}  // namespace redlock::test::back_off_test

#include "text/span.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace redlock::tool::span_test {
namespace {

using namespace std::chrono_literals;

TEST(ASpan, IsInSecondsWithoutAUnit) {
    EXPECT_EQ(parse_span("5"), 5s);
    EXPECT_EQ(parse_span("0.5"), 500ms);
    EXPECT_EQ(parse_span(".25"), 250ms);
    EXPECT_EQ(parse_span("0.3"), 300ms);
    EXPECT_EQ(parse_span("1.001"), 1001ms) << "a double has a little less";
    EXPECT_EQ(parse_span("12.345678901"), 12'345'678'901ns);
    EXPECT_EQ(parse_span("0"), 0s);
}

TEST(ASpan, MayHaveAUnit) {
    EXPECT_EQ(parse_span("250ms"), 250ms);
    EXPECT_EQ(parse_span("1.5s"), 1500ms);
    EXPECT_EQ(parse_span("2m"), 2min);
    EXPECT_EQ(parse_span("0.5h"), 30min);
    EXPECT_EQ(parse_span("2d"), 48h);
}

TEST(ASpan, MayHaveSeveralParts) {
    EXPECT_EQ(parse_span("1h30m"), 90min);
    EXPECT_EQ(parse_span("1m1.5s20ms"), 61520ms);
    for (const auto* const text : {"1h30", "30 1m", "1hh", "1h-30m", "h30m", "1h 30m"})
        EXPECT_THROW((void)parse_span(text), std::invalid_argument) << text;
}

TEST(ASpan, IsRejectedIfItIsInvalid) {
    for (const auto* const text : {"", "s", "ms", "x", "5 s", "5x", "1e3", "0x10", "nan", "inf", "-", "5s5",
                                   "5days", "1.2.3", ".", "1..2"})
        EXPECT_THROW((void)parse_span(text), std::invalid_argument) << text;
}

TEST(ASpan, IsRejectedIfItIsNegativeOrTooLong) {
    for (const auto* const text :
         {"-1", "-0.5ms", "1000000000000h", "99999999999999999999999999999999999999999s"})
        EXPECT_THROW((void)parse_span(text), std::invalid_argument) << text;
    const std::string many(400, '9');
    EXPECT_THROW((void)parse_span(many + "." + many), std::invalid_argument);
    EXPECT_EQ(parse_span("876000h"), 876'000h);  // 100 years
}

TEST(ASpan, IsShownWithTwoSignificantDigits) {
    EXPECT_EQ(text_of(212us), "0.21 ms");
    EXPECT_EQ(text_of(10ms), "10 ms");
    EXPECT_EQ(text_of(999ms), "999 ms");
    EXPECT_EQ(text_of(1s), "1.0 s");
    EXPECT_EQ(text_of(2500ms), "2.5 s");
}

TEST(ASpan, IsSuggestedAsAnArgumentInWholeNumbers) {
    EXPECT_EQ(argument_of(30s), "30s");
    EXPECT_EQ(argument_of(1500ms), "1500ms");
}

}  // namespace
}  // namespace redlock::tool::span_test

// What others supply reaches a terminal without the power to command it.
#include "tool/text/escaped.hpp"

#include <gtest/gtest.h>

#include <string>

namespace redlock::tool::escaped_test {
namespace {

TEST(Escaped, DoesNotChangePlainText) {
    for (const std::string text :
         {"", "orders:42", "back\\slash \"quoted\"", "Größe 漢字 😀", "\xF4\x8F\xBF\xBF"})
        EXPECT_EQ(escaped(text), text);
}

TEST(Escaped, ShowsControlCharactersAsBytes) {
    EXPECT_EQ(escaped("a\x1b[31mred\n\r\t\b"), "a\\x1b[31mred\\x0a\\x0d\\x09\\x08");
    EXPECT_EQ(escaped(std::string("\0\x7f", 2)), "\\x00\\x7f");
    EXPECT_EQ(escaped("C1: \xC2\x9B"
                      "31m \xC2\x80 \xC2\x9F"),
              "C1: \\xc2\\x9b31m \\xc2\\x80 \\xc2\\x9f");
    EXPECT_EQ(escaped("\xC2\xA0"), "\xC2\xA0")
        << "a blank that does not break the line is no control character";
}

TEST(Escaped, ShowsLineBreaksAndChangesOfDirectionAsBytes) {
    EXPECT_EQ(escaped("\xE2\x80\xA8"), "\\xe2\\x80\\xa8");
    EXPECT_EQ(escaped("\xE2\x80\xAE"), "\\xe2\\x80\\xae");
    EXPECT_EQ(escaped("\xE2\x81\xA6"), "\\xe2\\x81\\xa6");
    EXPECT_EQ(escaped("\xE2\x80\x93"), "\xE2\x80\x93") << "a dash";
}

TEST(Escaped, ShowsTheFirstAndTheLastChangeOfDirectionOfEachRangeAsBytes) {
    EXPECT_EQ(escaped("\xE2\x80\x8E \xE2\x80\x8F"), "\\xe2\\x80\\x8e \\xe2\\x80\\x8f") << "the two marks";
    EXPECT_EQ(escaped("\xE2\x80\xAA \xE2\x80\xAE"), "\\xe2\\x80\\xaa \\xe2\\x80\\xae");
    EXPECT_EQ(escaped("\xE2\x81\xA6 \xE2\x81\xA9"), "\\xe2\\x81\\xa6 \\xe2\\x81\\xa9");
    const std::string neighbours = "\xE2\x80\x8D \xE2\x80\x90 \xE2\x80\xAF \xE2\x81\xA5 \xE2\x81\xAA";
    EXPECT_EQ(escaped(neighbours), neighbours);
}

TEST(Escaped, DoesNotChangeTheFirstCharacterOfEachLength) {
    const std::string text = "\xE0\xA0\x80 \xF0\x90\x80\x80";
    EXPECT_EQ(escaped(text), text) << "U+0800 and U+10000";
}

TEST(Escaped, ShowsInvalidUtf8AsBytes) {
    EXPECT_EQ(escaped("\x9b"
                      "31m"),
              "\\x9b31m")
        << "a terminal of the old kind takes it for an escape";
    EXPECT_EQ(escaped("\xFF\xFE"), "\\xff\\xfe");
    EXPECT_EQ(escaped("cut off: \xE6\xBC"), "cut off: \\xe6\\xbc");
    EXPECT_EQ(escaped("\xE6x"), "\\xe6x");
    EXPECT_EQ(escaped("\xC0\x9B \xE0\x82\x9B \xF0\x80\x82\x9B"),
              "\\xc0\\x9b \\xe0\\x82\\x9b \\xf0\\x80\\x82\\x9b")
        << "with more bytes than needed";
    EXPECT_EQ(escaped("\xC1\x81 \xE0\x81\x81 \xF0\x80\x81\x81"),
              "\\xc1\\x81 \\xe0\\x81\\x81 \\xf0\\x80\\x81\\x81")
        << "an A with more bytes than needed";
    EXPECT_EQ(escaped("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "half of a pair of UTF-16";
    EXPECT_EQ(escaped("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
}

TEST(Escaped, IsIdempotent) {
    const auto once = escaped("a\x1b\n\xFF ü");
    EXPECT_EQ(escaped(once), once);
}

}  // namespace
}  // namespace redlock::tool::escaped_test

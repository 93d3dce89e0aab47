#include <redlock/detail/small_vector.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace redlock::test::small_vector_test {
namespace {

using testing::Each;
using Words = detail::SmallVector<std::string, 2>;

const std::string word(100, 'x');  // on the heap, so that a sanitizer finds a lost one

Words words(std::size_t count) {
    Words result(count);
    for (auto& it : result) it = word;
    return result;
}

/// The parameters are the sizes of two vectors: inside the object, or on the heap.
struct SmallVector : testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
    const std::size_t size = std::get<0>(GetParam());
    Words one = words(size);
    Words other{std::get<1>(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(InsideOrOnTheHeap, SmallVector,
                         testing::Combine(testing::Values(0, 2, 3), testing::Values(0, 2, 3)));

TEST_P(SmallVector, IsMoved) {
    Words moved{std::move(one)};
    EXPECT_EQ(moved.size(), size);
    EXPECT_THAT(std::span{moved}, Each(word));
    EXPECT_EQ(one.size(), 0U);  // NOLINT(bugprone-use-after-move)
    other = std::move(moved);
    EXPECT_EQ(other.size(), size);
    EXPECT_THAT(std::span{other}, Each(word));
    EXPECT_EQ(moved.size(), 0U);  // NOLINT(bugprone-use-after-move)
    moved = std::move(other);
    EXPECT_EQ(moved.size(), size);
    EXPECT_THAT(std::span{moved}, Each(word));
}

TEST_P(SmallVector, IsCopied) {
    other = one;
    EXPECT_EQ(other.size(), size);
    EXPECT_THAT(std::span{other}, Each(word));
    EXPECT_EQ(one.size(), size);
    for (auto& it : other) it = "y";
    EXPECT_THAT(std::span{one}, Each(word));
}

}  // namespace
}  // namespace redlock::test::small_vector_test

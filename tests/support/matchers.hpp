// GoogleTest, its matchers and the units of time, under the names that the tests use. A test that includes
// the header of a world has them.
#pragma once

#include <gmock/gmock.h>

#include <chrono>

namespace redlock::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

}  // namespace redlock::test

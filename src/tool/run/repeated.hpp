// Repeats a release or an extension that too few nodes have confirmed.
#pragma once

#include <redlock/algorithm/acquire.hpp>
#include <redlock/error.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

namespace redlock::tool {

/// Calls `operation`, and calls it again while too few nodes have confirmed it for a cause that may pass:
/// three times in all. A release or an extension that is executed twice does no harm. Blocks for as long as
/// each call does, mostly one node_timeout.
template <class Operation>
Result repeated(Operation operation) {
    auto result = operation();
    for (int calls = 1; calls < Retry{}.attempts; ++calls) {
        if (result.error() != Errc::no_quorum || !algorithm::worth_retrying(result)) break;
        result = operation();
    }
    return result;
}

}  // namespace redlock::tool

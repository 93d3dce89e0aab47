#include "suggestion.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

namespace redlock::tool {
namespace {

/// Returns how many letters have to be changed, inserted or removed to turn one word into the other.
std::size_t distance(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 0; i < one.size(); ++i) {
        auto diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < other.size(); ++j) {
            const auto changed = diagonal + (one[i] == other[j] ? 0U : 1U);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
    const auto by_distance = [&](const std::string& it) { return distance(word, it); };
    const auto nearest = std::ranges::min_element(known, {}, by_distance);
    constexpr std::size_t most = 2;
    const bool near = nearest != known.end() && by_distance(*nearest) <= most;
    return near ? "; did you mean " + *nearest + "?" : std::string{};
}

}  // namespace redlock::tool

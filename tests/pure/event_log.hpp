// The events of a world, one for each line: every round and every pause. Tests compare them, and a failing
// test prints them.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test {

class EventLog {
public:
    void note(std::string line) { lines_.push_back(std::move(line)); }
    const std::vector<std::string>& lines() const { return lines_; }

    /// Forgets the lines, but not the short names.
    void clear() { lines_.clear(); }

    /// Returns "#1" for the first owner, "#2" for the next. These are easier to read than 40 hex digits.
    std::string short_name(std::string_view owner) {
        return "#" +
               std::to_string(owners_.try_emplace(std::string{owner}, owners_.size() + 1).first->second);
    }

    std::size_t owners_met() const { return owners_.size(); }

private:
    std::vector<std::string> lines_;
    std::map<std::string, std::size_t> owners_;
};

}  // namespace redlock::test

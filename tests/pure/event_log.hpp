// What happened in a world, line by line: every round asked and every pause made. Tests compare it; a failing
// test prints it.
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

    /// "#1" for the owner met first, "#2" for the next: 40 random hex digits tell a reader nothing.
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

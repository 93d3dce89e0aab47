// What a lock protects, and how it knows who is late: it remembers the largest token it was shown and refuses
// smaller ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace redlock::sim {

class FencedStore {
public:
    bool write(std::uint64_t token, std::string who) {
        if (token < largest_) return false;
        largest_ = token;
        writers_.push_back(std::move(who));
        return true;
    }
    const std::vector<std::string>& writers() const noexcept { return writers_; }

private:
    std::uint64_t largest_ = 0;
    std::vector<std::string> writers_{};
};

}  // namespace redlock::sim

// The schedule of a world, line by line, for whoever has to understand a violation. Written only on demand:
// of the many schedules that are tried, hardly one is ever read.
#pragma once

#include "timeline.hpp"

#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::sim {

/// For readers: milliseconds.
inline std::string text(nanoseconds span) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.3f ms", static_cast<double>(span.count()) / 1e6);
    return buffer;
}

class Log {
public:
    explicit Log(const Timeline& timeline) : timeline_(&timeline) {}

    void open() noexcept { open_ = true; }
    bool is_open() const noexcept { return open_; }

    /// `line` makes the text, and is not called where nobody is going to read it.
    template <class Line>
    void note(std::string_view who, Line line) {
        if (!open_) return;
        char time[24];
        std::snprintf(time, sizeof time, "%13.6f", static_cast<double>(timeline_->now().count()) / 1e6);
        lines_.push_back(std::string{time} + "  " + std::string{who} + ": " + line());
    }

    const std::vector<std::string>& lines() const noexcept { return lines_; }

    /// "#1" for the owner met first: 40 hex digits tell a reader nothing.
    std::string nickname(std::string_view owner) {
        return "#" + std::to_string(names_.try_emplace(std::string{owner}, names_.size() + 1).first->second);
    }

private:
    const Timeline* timeline_;
    bool open_ = false;
    std::vector<std::string> lines_{};
    std::map<std::string, std::size_t> names_{};
};

}  // namespace redlock::sim

// The schedule of a world, line by line, to read after a violation. It is written only on demand, because
// hardly any of the many schedules is ever read.
#pragma once

#include "timeline.hpp"

#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::sim {

/// Formats a duration in milliseconds.
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

    /// `line` returns the text. It is called only if the log is open.
    template <class Line>
    void note(std::string_view source, Line line) {
        if (!open_) return;
        char time[24];
        std::snprintf(time, sizeof time, "%13.6f", static_cast<double>(timeline_->now().count()) / 1e6);
        lines_.push_back(std::string{time} + "  " + std::string{source} + ": " + line());
    }

    const std::vector<std::string>& lines() const noexcept { return lines_; }

    /// Returns "#1" for the first owner, "#2" for the second, and so on. These are easier to read than 40 hex
    /// digits.
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

// The measurements. They are printed as tables immediately, and written as JSON at the end.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace redlock::bench {

/// A cell without a value.
inline constexpr double none = std::numeric_limits<double>::quiet_NaN();

struct Row {
    std::string client;
    std::vector<double> cells;
};

struct Table {
    std::string scenario;              ///< "loopback"
    std::string setting;               ///< "TCP, pinned"
    std::vector<std::string> columns;  ///< names with their unit: "p50_us"
    std::vector<Row> rows{};
};

/// A number with a target.
struct Figure {
    enum class Bound : bool { at_most, at_least };
    std::string name;
    double measured;
    Bound bound;
    double target;

    bool reached() const noexcept {
        return bound == Bound::at_most ? measured <= target : measured >= target;
    }
};

/// When and where the measurements were made, and of which commit.
struct Origin {
    std::string date;
    std::string commit;
    std::string machine;
};

class Report {
public:
    void add(Table table);
    void add(Figure figure) { figures_.push_back(std::move(figure)); }

    /// Prints PASS or MISSED for each figure.
    void print_figures() const;

    void write(const std::filesystem::path& path, const Origin& origin) const;

private:
    std::vector<Table> tables_{};
    std::vector<Figure> figures_{};
};

}  // namespace redlock::bench

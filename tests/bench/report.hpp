// What was measured: printed as tables while it comes in, and written as JSON at the end.
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

/// A number that is to be reached.
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

/// What was measured, when and where.
struct Origin {
    std::string date;
    std::string commit;
    std::string machine;
};

class Report {
public:
    void add(Table table);
    void add(Figure figure) { figures_.push_back(std::move(figure)); }

    /// PASS or MISSED for each.
    void print_figures() const;

    void write(const std::filesystem::path& path, const Origin& origin) const;

private:
    std::vector<Table> tables_{};
    std::vector<Figure> figures_{};
};

}  // namespace redlock::bench

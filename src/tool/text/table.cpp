#include "table.hpp"

#include "escaped.hpp"

#include <algorithm>
#include <utility>

namespace redlock::tool {

void Table::add(std::vector<std::string> cells) {
    for (auto& cell : cells) cell = escaped(cell);
    rows_.push_back(std::move(cells));
}

std::ostream& operator<<(std::ostream& out, const Table& table) {
    std::vector<std::size_t> widths(table.rows_.front().size());
    for (const auto& row : table.rows_)
        for (std::size_t column = 0; column < row.size(); ++column)
            widths[column] = std::max(widths[column], row[column].size());
    const auto is_empty = [&](std::size_t column) {
        return std::all_of(table.rows_.begin() + 1, table.rows_.end(),
                           [&](const auto& row) { return row[column].empty(); });
    };
    for (const auto& row : table.rows_) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            if (is_empty(column)) continue;
            line += row[column];
            line.append(widths[column] - row[column].size() + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out << line << '\n';
    }
    return out;
}

}  // namespace redlock::tool

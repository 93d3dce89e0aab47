#include "table.hpp"

#include "escaped.hpp"

#include <algorithm>
#include <cstddef>

namespace redlock::tool {

void print_table(std::ostream& out, const Table& table) {
    std::vector<std::string> lines(table.size());
    std::size_t begin = 0;  // of the next column
    for (std::size_t column = 0; column < table.front().size(); ++column) {
        const auto is_empty = [column](const auto& row) { return row[column].empty(); };
        if (std::all_of(table.begin() + 1, table.end(), is_empty)) continue;
        std::size_t end = 0;
        for (std::size_t row = 0; row < table.size(); ++row) {
            lines[row].resize(begin, ' ');
            lines[row] += escaped(table[row][column]);
            end = std::max(end, lines[row].size());
        }
        begin = end + 2;
    }
    for (const auto& line : lines) out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
}

}  // namespace redlock::tool

// Prints rows of text in columns that are as wide as necessary. The cells are escaped (escaped.hpp).
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace redlock::tool {

class Table {
public:
    explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}

    /// Adds a row. It must have as many cells as there are headings.
    void add(std::vector<std::string> cells);

    /// Prints two blanks between the columns and none at the end of a line. Leaves out a column whose cells
    /// are all empty.
    friend std::ostream& operator<<(std::ostream& out, const Table& table);

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace redlock::tool

// Rows of text in columns as wide as they need. The cells are escaped (escaped.hpp).
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace redlock::tool {

class Table {
public:
    explicit Table(std::vector<std::string> headings) : rows_{std::move(headings)} {}

    /// As many cells as there are headings.
    void add(std::vector<std::string> cells);

    /// Two blanks between the columns, none at the end of a line. A column without cells is left out.
    friend std::ostream& operator<<(std::ostream& out, const Table& table);

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace redlock::tool

// Prints rows of text in columns that are as wide as necessary.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace redlock::tool {

/// The rows, which have as many cells each. The first one has the headings.
using Table = std::vector<std::vector<std::string>>;

/// Prints two blanks between the columns and none at the end of a line. Leaves out a column whose cells,
/// except the heading, are all empty. The cells are escaped (escaped.hpp).
void print_table(std::ostream& out, const Table& table);

}  // namespace redlock::tool

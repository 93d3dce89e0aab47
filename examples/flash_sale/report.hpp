// What the demo says at the end.
#pragma once

#include "sale.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace flash_sale {

/// The table, a column a sale.
void print_table(std::ostream& out, const Account& unlocked, const Account& locked,
                 const std::vector<std::string>& downtimes);

/// Every item was sold exactly once.
bool flawless(const Account& account);

}  // namespace flash_sale

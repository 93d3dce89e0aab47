#include "report.hpp"

#include "decimal.hpp"

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace flash_sale {

namespace {

void row(std::ostream& out, const std::string& what, const std::string& unlocked, const std::string& locked) {
    out << "  " << std::left << std::setw(24) << what << std::right << std::setw(18) << unlocked
        << std::setw(18) << locked << '\n';
}

void row(std::ostream& out, const std::string& what, int unlocked, int locked) {
    row(out, what, std::to_string(unlocked), std::to_string(locked));
}

/// The wait that so much of all waits did not exceed.
std::string quantile(std::vector<std::chrono::microseconds> waits, double share) {
    if (waits.empty()) return "-";
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(waits.size() - 1));
    const auto nth = waits.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(waits.begin(), nth, waits.end());
    return in_milliseconds(*nth);
}

}  // namespace

void print_table(std::ostream& out, const Account& unlocked, const Account& locked,
                 const std::vector<std::string>& downtimes) {
    const auto& total = locked.total;
    row(out, "", "without the lock", "with the lock");
    row(out, "in stock", unlocked.stock, locked.stock);
    row(out, "sold", unlocked.total.sold, total.sold);
    row(out, "oversold", unlocked.oversold(), locked.oversold());
    row(out, "acquisitions", "-", std::to_string(total.acquisitions));
    row(out, "contended", "-", std::to_string(total.contended));
    row(out, "lost before the sale", "-", std::to_string(total.lost));
    row(out, "median time to acquire", "-", quantile(total.waits, 0.5));
    row(out, "p99 time to acquire", "-", quantile(total.waits, 0.99));
    for (const auto& downtime : downtimes) out << "  down with the lock        " << downtime << '\n';
}

bool flawless(const Account& account) {
    return account.total.sold == account.stock && account.left == 0;
}

}  // namespace flash_sale

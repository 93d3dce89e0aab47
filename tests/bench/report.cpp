#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace redlock::bench {
namespace {

std::string text(double value) {
    if (std::isnan(value)) return "-";
    const auto size = std::abs(value);
    const int digits = size >= 1000 || value == std::floor(value) ? 0 : size >= 10 ? 1 : size >= 3 ? 2 : 3;
    std::ostringstream out;
    out << std::fixed << std::setprecision(digits) << value;
    return out.str();
}

std::string json(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return result + '"';
}

std::string json(double value) {
    if (!std::isfinite(value)) return "null";
    std::ostringstream out;
    out << std::setprecision(6) << value;
    return out.str();
}

/// Joins the results of `element` for the elements of `range`.
template <class Range, class Element>
std::string list(const Range& range, const std::string& indent, Element element) {
    std::string result = "[";
    for (const auto& it : range) result += (result.size() > 1 ? ",\n" : "\n") + indent + element(it);
    return result + "]";
}

std::string json(const Table& table) {
    const auto line = [&](const Row& row) {
        auto result = "{\"client\": " + json(row.client);
        for (std::size_t i = 0; i < row.cells.size(); ++i)
            result += ", " + json(table.columns[i]) + ": " + json(row.cells[i]);
        return result + "}";
    };
    return "{\"scenario\": " + json(table.scenario) + ", \"setting\": " + json(table.setting) +
           ",\n   \"rows\": " + list(table.rows, "    ", line) + "}";
}

const char* sign(const Figure& figure) {
    return figure.bound == Figure::Bound::at_most ? "<=" : ">=";
}

std::string json(const Figure& figure) {
    return "{\"name\": " + json(figure.name) + ", \"measured\": " + json(figure.measured) +
           ", \"bound\": " + json(std::string{sign(figure)}) + ", \"target\": " + json(figure.target) +
           ", \"reached\": " + (figure.reached() ? "true" : "false") + "}";
}

void print(const Table& table) {
    std::size_t first = 0;
    for (const auto& row : table.rows) first = std::max(first, row.client.size());
    std::cout << "\n== " << table.scenario << (table.setting.empty() ? "" : ": ") << table.setting << '\n'
              << std::string(first, ' ');
    for (const auto& column : table.columns) std::cout << "  " << std::setw(9) << column;
    for (const auto& row : table.rows) {
        std::cout << '\n' << std::left << std::setw(static_cast<int>(first)) << row.client << std::right;
        for (std::size_t i = 0; i < row.cells.size(); ++i)
            std::cout << "  "
                      << std::setw(static_cast<int>(std::max<std::size_t>(9, table.columns[i].size())))
                      << text(row.cells[i]);
    }
    std::cout << std::endl;
}

}  // namespace

void Report::add(Table table) {
    print(table);
    tables_.push_back(std::move(table));
}

void Report::print_figures() const {
    if (figures_.empty()) return;
    std::cout << "\n== figures to reach\n";
    for (const auto& figure : figures_)
        std::cout << (figure.reached() ? "PASS    " : "MISSED  ") << std::setw(6) << text(figure.measured)
                  << ' ' << sign(figure) << ' ' << std::left << std::setw(5) << text(figure.target)
                  << std::right << "  " << figure.name << '\n';
    std::cout << std::flush;
}

void Report::write(const std::filesystem::path& path, const Origin& origin) const {
    std::ofstream file{path};
    file << "{\"date\": " << json(origin.date) << ", \"commit\": " << json(origin.commit)
         << ",\n \"machine\": " << json(origin.machine)
         << ",\n \"figures\": " << list(figures_, "  ", [](const auto& figure) { return json(figure); })
         << ",\n \"tables\": " << list(tables_, "  ", [](const auto& table) { return json(table); }) << "}\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace redlock::bench

// Durations as the demo prints them, with one digit after the decimal point.
#pragma once

#include <chrono>
#include <iomanip>
#include <sstream>
#include <string>

namespace flash_sale {

inline std::string decimal(double number, const char* unit) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(1) << number << unit;
    return text.str();
}

inline std::string in_seconds(std::chrono::duration<double> span) {
    return decimal(span.count(), " s");
}

inline std::string in_milliseconds(std::chrono::duration<double, std::milli> span) {
    return decimal(span.count(), " ms");
}

}  // namespace flash_sale

// Numbers as the demo shows them.
#pragma once

#include <chrono>
#include <iomanip>
#include <ios>
#include <sstream>
#include <string>

namespace flash_sale {

/// With one digit after the point.
inline std::string decimal(double number) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(1) << number;
    return text.str();
}

template <class Rep, class Period>
std::string in_seconds(std::chrono::duration<Rep, Period> span) {
    return decimal(std::chrono::duration<double>(span).count()) + " s";
}

template <class Rep, class Period>
std::string in_milliseconds(std::chrono::duration<Rep, Period> span) {
    return decimal(std::chrono::duration<double, std::milli>(span).count()) + " ms";
}

}  // namespace flash_sale

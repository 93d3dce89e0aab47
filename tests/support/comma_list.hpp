// Lists of addresses, as in the environment variable REDLOCK_NODES.

#pragma once

#include <string>

namespace redlock::support {

/// Returns the texts of the elements, with commas between them.
template <class Range, class TextOf>
std::string comma_list(Range&& range, TextOf text_of) {
    std::string list;
    for (const auto& it : range) list += (list.empty() ? "" : ",") + std::string{text_of(it)};
    return list;
}

}  // namespace redlock::support

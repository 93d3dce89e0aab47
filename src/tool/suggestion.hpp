// What the user may have meant by a word that redlock does not know.
#pragma once

#include <string>
#include <vector>

namespace redlock::tool {

/// Returns "; did you mean status?" if the word is similar to a known one, otherwise an empty text.
std::string suggestion(const std::string& word, const std::vector<std::string>& known);

}  // namespace redlock::tool

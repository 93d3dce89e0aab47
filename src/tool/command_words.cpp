#include "command_words.hpp"

#include <algorithm>
#include <cstddef>

namespace redlock::tool {
namespace {

bool has_option(const CLI::App& app, const std::string& name) {
    return app.get_option_no_throw(name) != nullptr;
}

bool takes_value(const CLI::App& app, const std::string& name) {
    return has_option(app, name) && app.get_option(name)->get_items_expected_max() > 0;
}

}  // namespace

bool begins_with_option(const CLI::App& app, const std::string& word) {
    if (word.starts_with("--")) return has_option(app, word.substr(0, word.find('=')));
    return word.size() > 1 && has_option(app, {'-', word[1]});
}

bool takes_next_word(const CLI::App& app, const std::string& word) {
    if (word.starts_with("--")) return word.find('=') == word.npos && takes_value(app, word);
    for (std::size_t i = 1; i < word.size(); ++i)
        if (takes_value(app, {'-', word[i]})) return i + 1 == word.size();
    return false;
}

namespace {

/// Returns the index of RESOURCE, or the number of words if there is none.
std::size_t place_of_resource(const CLI::App& app, const std::vector<std::string>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        const auto& word = words[i];
        if (word == "--") return std::min(i + 1, words.size());
        if (word.size() < 2 || word.front() != '-') return i;
        if (takes_next_word(app, word)) ++i;
    }
    return words.size();
}

/// Returns the index behind the options that follow RESOURCE. Only -c may do so, as in `redlock run RESOURCE
/// -c STRING`, because flock has it there.
std::size_t end_of_options(const CLI::App& app, const std::vector<std::string>& words, std::size_t from) {
    if (from >= words.size()) return from;
    const auto& word = words[from];
    if (!word.starts_with("-c") && !word.starts_with("--command")) return from;
    return std::min(from + (takes_next_word(app, word) ? 2U : 1U), words.size());
}

}  // namespace

std::vector<std::string> take_command(const CLI::App& app, std::vector<std::string>& words) {
    const auto resource = place_of_resource(app, words);
    if (resource >= words.size()) return {};
    const auto end = words.begin() + static_cast<std::ptrdiff_t>(end_of_options(app, words, resource + 1));
    const auto command = end != words.end() && *end == "--" ? end + 1 : end;
    std::vector<std::string> result{command, words.end()};
    words.erase(end, words.end());
    return result;
}

}  // namespace redlock::tool

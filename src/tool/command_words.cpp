#include "command_words.hpp"

#include <algorithm>
#include <cstddef>

namespace redlock::tool {
namespace {

bool takes_value(const CLI::App& app, const std::string& name) {
    const auto* const option = app.get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_max() > 0;
}

/// "-w" and "-nw" take the next word as a value; "-w5", "-nv", "--wait=5" do not.
bool takes_next_word(const CLI::App& app, const std::string& word) {
    if (word.starts_with("--")) return word.find('=') == word.npos && takes_value(app, word);
    for (std::size_t i = 1; i < word.size(); ++i)
        if (takes_value(app, {'-', word[i]})) return i + 1 == word.size();
    return false;
}

/// The index of RESOURCE; the number of words if there is none.
std::size_t place_of_resource(const CLI::App& app, const std::vector<std::string>& words) {
    std::size_t i = 0;
    for (; i < words.size(); ++i) {
        const auto& word = words[i];
        if (word == "--") return std::min(i + 1, words.size());
        if (word.size() < 2 || word.front() != '-') return i;
        if (takes_next_word(app, word)) ++i;
    }
    return words.size();
}

/// `redlock run RESOURCE -c STRING`: as in flock, our options may also follow RESOURCE.
std::size_t end_of_options(const CLI::App& app, const std::vector<std::string>& words, std::size_t from) {
    auto i = from;
    while (i < words.size() && words[i] != "--" && words[i].size() > 1 && words[i].front() == '-')
        i += takes_next_word(app, words[i]) ? 2U : 1U;
    return std::min(i, words.size());
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

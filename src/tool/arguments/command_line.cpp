#include "command_line.hpp"

#include <redlock/version.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace redlock::tool {
namespace {

bool takes_value(const CLI::App& app, const std::string& name) {
    const auto* const option = app.get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_max() > 0;
}

/// Returns true if `word` is an option of `app`, or begins with one as "-nv" and "--wait=5" do.
bool begins_with_option(const CLI::App& app, const std::string& word) {
    const auto end = word.starts_with("--") ? word.find('=') : 2;
    return app.get_option_no_throw(word.substr(0, end)) != nullptr;
}

/// Returns true if the next word is the value of `word`. That is the case behind "-w" and "-nw", but not
/// behind "-w5", "-nv" and "--wait=5".
bool takes_next_word(const CLI::App& app, const std::string& word) {
    if (word.starts_with("--")) return word.find('=') == word.npos && takes_value(app, word);
    for (std::size_t i = 1; i < word.size(); ++i)
        if (takes_value(app, {'-', word[i]})) return i + 1 == word.size();
    return false;
}

/// Returns the index of RESOURCE, or the number of words if there is none.
std::size_t place_of_resource(const CLI::App& app, const std::vector<std::string>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        const auto& word = words[i];
        if (word == "--") return i + 1;
        if (word.size() < 2 || word.front() != '-') return i;
        if (takes_next_word(app, word)) ++i;
    }
    return words.size();
}

}  // namespace

std::vector<std::string> take_program(const CLI::App& app, std::vector<std::string>& words) {
    const auto resource = place_of_resource(app, words);
    if (resource >= words.size()) return {};
    auto end = words.begin() + static_cast<std::ptrdiff_t>(resource) + 1;
    // The only option behind RESOURCE is -c, as in `redlock run RESOURCE -c STRING`, because flock has it
    // there.
    if (end != words.end() && (end->starts_with("-c") || end->starts_with("--command")))
        end += std::min<std::ptrdiff_t>(takes_next_word(app, *end) ? 2 : 1, words.end() - end);
    const auto program = end != words.end() && *end == "--" ? end + 1 : end;
    std::vector<std::string> result{program, words.end()};
    words.erase(end, words.end());
    return result;
}

CommandLine::CommandLine() {
    app_.set_version_flag("--version", "redlock " REDLOCK_VERSION_STRING);
    app_.require_subcommand(1);
}

/// Moves the name of the subcommand to the front, so that options of the subcommand may precede it. Changes
/// nothing if an option of redlock itself, such as --version, comes first.
std::vector<std::string> CommandLine::subcommand_first(std::vector<std::string> words) const {
    const auto subcommands = app_.get_subcommands({});
    std::size_t place = 0;
    while (place < words.size() && words[place].starts_with('-')) {
        const auto& option = words[place];
        const auto it = std::ranges::find_if(
            subcommands, [&](const CLI::App* each) { return begins_with_option(*each, option); });
        if (it == subcommands.end()) {
            if (app_.get_option_no_throw(option) != nullptr) return words;
            throw std::invalid_argument{"unknown option: " + option};
        }
        place += takes_next_word(**it, option) ? 2U : 1U;
    }
    if (place >= words.size()) return words;
    const auto name = words.begin() + static_cast<std::ptrdiff_t>(place);
    std::rotate(words.begin(), name, name + 1);
    return words;
}

std::function<int()> CommandLine::parse(std::vector<std::string> words) {
    if (!words.empty() && words.front() == "help") {  // as git does: "help" or "help COMMAND"
        words.erase(words.begin());
        words.resize(std::min<std::size_t>(words.size(), 1));
        words.emplace_back("--help");
    }
    words = subcommand_first(std::move(words));
    if (words.empty()) throw std::invalid_argument{"a command is required"};
    const auto subcommands = app_.get_subcommands({});
    const auto known = std::ranges::count(subcommands, words.front(), &CLI::App::get_name);
    if (known == 0 && !words.front().starts_with('-'))
        throw std::invalid_argument{"unknown command: " + words.front()};
    if (take_program_) take_program_(words);
    try {
        std::ranges::reverse(words);  // CLI11 expects this order
        app_.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw std::invalid_argument{error.what()};
        (void)app_.exit(error);  // prints the text of --help or --version
        return {};
    }
    return chosen_;
}

}  // namespace redlock::tool

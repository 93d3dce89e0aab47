#include "command_line.hpp"

#include "command_words.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock::tool {
namespace {

std::vector<std::string> long_options(const CLI::App& app) {
    std::vector<std::string> result;
    for (const auto* const option : app.get_options())
        for (const auto& name : option->get_lnames()) result.push_back("--" + name);
    return result;
}

/// Returns how many letters have to be changed, inserted or removed to turn one word into the other.
std::size_t distance(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    std::iota(row.begin(), row.end(), 0U);
    for (std::size_t i = 0; i < one.size(); ++i) {
        auto diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < other.size(); ++j) {
            const auto changed = diagonal + (one[i] == other[j] ? 0U : 1U);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

/// Returns "; did you mean status?" if the word is similar to a known one, otherwise an empty text.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
    const auto by_distance = [&](const std::string& it) { return distance(word, it); };
    const auto nearest = std::ranges::min_element(known, {}, by_distance);
    constexpr std::size_t most = 2;
    const bool near = nearest != known.end() && by_distance(*nearest) <= most;
    return near ? "; did you mean " + *nearest + "?" : std::string{};
}

}  // namespace

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(description, name) {
    app_.set_version_flag("--version", name + " " + version);
    app_.require_subcommand(1);
}

CLI::App& CommandLine::add(const std::string& name, const std::string& help, std::function<int()> carry_out) {
    auto* const app = app_.add_subcommand(name, help);
    app->callback([this, carry_out = std::move(carry_out)] { chosen_ = carry_out; });
    return *app;
}

/// Moves the name of the subcommand to the front, so that options of the subcommand may precede it. Changes
/// nothing if an option of the whole command, such as --version, comes first.
std::vector<std::string> CommandLine::command_first(std::vector<std::string> words) const {
    const auto subcommands = app_.get_subcommands({});
    std::size_t command = 0;
    while (command < words.size() && words[command].starts_with('-')) {
        const auto& option = words[command];
        const auto it = std::ranges::find_if(
            subcommands, [&](const CLI::App* each) { return begins_with_option(*each, option); });
        if (it == subcommands.end()) {
            if (app_.get_option_no_throw(option) != nullptr) return words;
            throw std::invalid_argument{"unknown option: " + option};
        }
        command += takes_next_word(**it, option) ? 2U : 1U;
    }
    if (command >= words.size()) return words;
    const auto name = words.begin() + static_cast<std::ptrdiff_t>(command);
    std::rotate(words.begin(), name, name + 1);
    return words;
}

void CommandLine::check_command(const std::vector<std::string>& words) const {
    if (words.empty()) throw std::invalid_argument{"a command is required"};
    std::vector<std::string> known;
    for (const auto* const it : app_.get_subcommands({})) known.push_back(it->get_name());
    const auto& word = words.front();
    if (word.starts_with('-') || std::ranges::count(known, word) > 0) return;
    throw std::invalid_argument{"unknown command: " + word + suggestion(word, known)};
}

/// Removes the command of the user from the end of `words`. The first word is the name of the subcommand.
void CommandLine::take_foreign_command(std::vector<std::string>& words) const {
    for (const auto& [app, target] : foreign_commands_)
        if (app->get_name() == words.front()) *target = take_command(*app, words);
}

/// Returns a suggestion for the first option in a message such as "The following argument was not expected:
/// --tll".
std::string CommandLine::hint_for(const std::string& message) const {
    const auto chosen = app_.get_subcommands();
    const auto begin = message.find("--");
    if (chosen.empty() || begin == message.npos) return {};
    return suggestion(message.substr(begin, message.find_first_of(" =,", begin) - begin),
                      long_options(*chosen.front()));
}

std::optional<std::function<int()>> CommandLine::parse(std::vector<std::string> words) {
    if (!words.empty() && words.front() == "help") {  // as git does: "help" or "help COMMAND"
        words.erase(words.begin());
        words.resize(std::min<std::size_t>(words.size(), 1));
        words.emplace_back("--help");
    }
    words = command_first(std::move(words));
    check_command(words);
    take_foreign_command(words);
    try {
        std::ranges::reverse(words);  // CLI11 expects this order
        app_.parse(std::move(words));
    } catch (const CLI::ExtrasError& error) {
        throw std::invalid_argument{error.what() + hint_for(error.what())};
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw std::invalid_argument{error.what()};
        (void)app_.exit(error);  // prints the text of --help or --version
        return std::nullopt;
    }
    return chosen_;
}

}  // namespace redlock::tool

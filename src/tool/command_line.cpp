#include "command_line.hpp"

#include "command_words.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace redlock::tool {

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(description, name) {
    app_.set_version_flag("--version", name + " " + version);
    app_.require_subcommand(1);
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
    const auto& word = words.front();
    const auto is_it = [&](const CLI::App* app) { return app->get_name() == word; };
    if (!word.starts_with('-') && std::ranges::none_of(app_.get_subcommands({}), is_it))
        throw std::invalid_argument{"unknown command: " + word};
}

std::function<int()> CommandLine::parse(std::vector<std::string> words) {
    if (!words.empty() && words.front() == "help") {  // as git does: "help" or "help COMMAND"
        words.erase(words.begin());
        words.resize(std::min<std::size_t>(words.size(), 1));
        words.emplace_back("--help");
    }
    words = command_first(std::move(words));
    check_command(words);
    if (with_foreign_command_ != nullptr && with_foreign_command_->get_name() == words.front())
        *foreign_command_ = take_command(*with_foreign_command_, words);
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

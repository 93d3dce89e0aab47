// The command line: its subcommands, and the order of its words. CLI11 parses it.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redlock::tool {

/// Removes the user's program and its arguments from the end of `words`, which are `run [OPTION...] RESOURCE
/// [--] COMMAND [ARG...]`, and returns them. They are everything behind RESOURCE, which is the first of the
/// words behind the name of the subcommand that is neither an option of `app` nor the value of one. Words of
/// the program that look like options of redlock belong to the program. A "--" in between is dropped.
std::vector<std::string> take_program(const CLI::App& app, std::vector<std::string>& words);

class CommandLine {
public:
    CommandLine();

    /// Adds a subcommand. `carry_out` executes it after its arguments are parsed, and returns the exit
    /// status. `Arguments` has the values of the arguments, which its function `add_to` adds. If it has a
    /// member `words`, the words behind RESOURCE are a program of the user, which is stored there. Options in
    /// these words are not parsed. One subcommand may have such a program.
    template <class Arguments>
    void add(const std::string& name, const std::string& help, int (*carry_out)(const Arguments&),
             void (Arguments::*add_to)(CLI::App&) = &Arguments::add_to) {
        const auto arguments = std::make_shared<Arguments>();
        auto* const app = app_.add_subcommand(name, help);
        app->callback([=, this] { chosen_ = [=] { return carry_out(*arguments); }; });
        ((*arguments).*add_to)(*app);
        if constexpr (requires { arguments->words; })
            take_program_ = [app, arguments](std::vector<std::string>& words) {
                if (words.front() == app->get_name()) arguments->words = take_program(*app, words);
            };
    }

    /// Parses the command line and returns the function that executes the subcommand. Returns an empty
    /// function after it has printed --help or --version. There must be exactly one subcommand. Its options
    /// may also stand in front of its name. Throws std::invalid_argument for any error.
    std::function<int()> parse(std::vector<std::string> words);

private:
    std::vector<std::string> subcommand_first(std::vector<std::string> words) const;

    CLI::App app_{"Distributed locks with Redis (Redlock) over N independent masters.", "redlock"};
    std::function<void(std::vector<std::string>&)> take_program_{};
    std::function<int()> chosen_{};
};

}  // namespace redlock::tool

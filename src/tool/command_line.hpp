// The command line: its subcommands, and the order of its words. CLI11 parses it.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::tool {

class CommandLine {
public:
    CommandLine(const std::string& name, const std::string& description, const std::string& version);

    /// Adds a subcommand. `carry_out` executes it after its arguments are parsed, and returns the exit
    /// status. A `Request` has the values of the arguments, which its function `add_to` adds.
    template <class Request>
    void add(const std::string& name, const std::string& help, int (*carry_out)(const Request&),
             void (Request::*add_to)(CLI::App&) = &Request::add_to) {
        const auto request = std::make_shared<Request>();
        ((*request).*add_to)(add(name, help, [request, carry_out] { return carry_out(*request); }));
    }
    CLI::App& add(const std::string& name, const std::string& help, std::function<int()> carry_out);

    /// Stores the words behind RESOURCE, which are a command of the user, in `target`. Options in these words
    /// are not parsed. One subcommand may have such a command.
    void set_foreign_command(const CLI::App& app, std::vector<std::string>& target) {
        with_foreign_command_ = &app;
        foreign_command_ = &target;
    }

    /// Parses the command line and returns the function that executes the subcommand. Returns nothing after
    /// it has printed --help or --version. There must be exactly one subcommand. Its options may also stand
    /// in front of its name. Throws std::invalid_argument for any error.
    std::optional<std::function<int()>> parse(std::vector<std::string> words);

private:
    std::vector<std::string> command_first(std::vector<std::string> words) const;
    void check_command(const std::vector<std::string>& words) const;

    CLI::App app_;
    const CLI::App* with_foreign_command_ = nullptr;
    std::vector<std::string>* foreign_command_ = nullptr;
    std::function<int()> chosen_{};
};

}  // namespace redlock::tool

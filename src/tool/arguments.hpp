// The command line: subcommands and their arguments. CLI11 parses it. Only arguments.cpp includes CLI11.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace redlock::tool {

/// The arguments of one subcommand. If an argument is not given, its target keeps its value.
class Arguments {
public:
    explicit Arguments(CLI::App& app) noexcept : app_(app) {}

    /// `type` is the placeholder for the value in --help.
    void text(const std::string& names, std::string& target, const std::string& help,
              const char* type = "TEXT");
    void required_text(const std::string& names, std::string& target, const std::string& help,
                       const char* type = "TEXT");
    void repeated_text(const std::string& names, std::vector<std::string>& target, const std::string& help,
                       const char* type);
    void flag(const std::string& names, bool& target, const std::string& help);
    /// Calls `seen` if the flag is given. `seen` throws std::invalid_argument if the flag is not possible.
    void flag(const std::string& names, std::function<void()> seen, const std::string& help);
    void number(const std::string& names, double& target, const std::string& help);
    void number(const std::string& names, std::function<void(int)> take, int least, int most,
                const std::string& help);

    /// A duration, see span.hpp.
    void span(const std::string& names, std::chrono::nanoseconds& target, const std::string& help);
    void span(const std::string& names, std::chrono::milliseconds& target, const std::string& help);

    /// Accepts `former`, the name of the option `name` in earlier versions, with a warning. --help does not
    /// show it. If both are given, that is an error: CLI11 has no name for a hidden option in its message.
    void former_name(const std::string& former, const std::string& name, std::chrono::milliseconds& target);

    /// Passes the value to `read`, which throws std::invalid_argument if the value is wrong.
    void value(const std::string& names, std::function<void(const std::string&)> read,
               const std::string& help, const char* type);

    /// Forbids that both options are given.
    void exclude(const std::string& one, const std::string& other);

    /// Arguments that are added from now on appear under this heading in --help.
    void begin_group(const std::string& heading) { group_ = heading; }
    void footer(const std::string& text);

    /// Stores the words behind RESOURCE, which are a command of the user, in `target`. Options in these words
    /// are not parsed.
    void foreign_command(std::vector<std::string>& target) { foreign_command_ = &target; }

    /// Return true if there is an option of that name, and if it is followed by a value.
    bool has_option(const std::string& name) const;
    bool takes_value(const std::string& name) const;

    /// Removes the command of the user from the end of `words`. The first word is the name of the subcommand.
    void take_foreign_command(std::vector<std::string>& words) const;

private:
    void add(CLI::Option* option, const char* type);

    CLI::App& app_;
    std::string group_{};
    std::vector<std::string>* foreign_command_ = nullptr;
};

class CommandLine {
public:
    CommandLine(const std::string& name, const std::string& description, const std::string& version);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    /// Adds a subcommand. `carry_out` executes it after its arguments are parsed, and returns the exit
    /// status.
    Arguments& add(const std::string& name, const std::string& help, std::function<int()> carry_out);

    /// Parses the command line and returns the function that executes the subcommand. Returns nothing after
    /// it has printed --help or --version. There must be exactly one subcommand. Its options may also stand
    /// in front of its name. Throws std::invalid_argument for any error.
    std::optional<std::function<int()>> parse(std::vector<std::string> words);

private:
    struct Subcommand {
        CLI::App* app;
        Arguments arguments;
        std::function<int()> carry_out;
    };

    std::vector<std::string> command_first(std::vector<std::string> words) const;
    void check_command(const std::vector<std::string>& words) const;
    std::string hint_for(const std::string& message) const;

    std::unique_ptr<CLI::App> app_;
    std::list<Subcommand> subcommands_{};
};

}  // namespace redlock::tool

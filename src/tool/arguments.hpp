// The command line: subcommands and what they are given. CLI11 reads it, which arguments.cpp alone includes.
#pragma once

#include <chrono>
#include <cstddef>
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

/// The arguments of one subcommand. What is added keeps its value where it is not given.
class Arguments {
public:
    explicit Arguments(CLI::App& app) noexcept : app_(app) {}

    /// `type` is what --help shows in place of the value.
    void text(const std::string& names, std::string& target, const std::string& help,
              const char* type = "TEXT");
    void required_text(const std::string& names, std::string& target, const std::string& help,
                       const char* type = "TEXT");
    void repeated_text(const std::string& names, std::vector<std::string>& target, const std::string& help,
                       const char* type);
    void flag(const std::string& names, bool& target, const std::string& help);
    /// Calls `seen`, which throws std::invalid_argument where the flag cannot be had.
    void flag(const std::string& names, std::function<void()> seen, const std::string& help);
    void number(const std::string& names, double& target, const std::string& help);
    void number(const std::string& names, std::function<void(int)> take, int least, int most,
                const std::string& help);

    /// See span.hpp.
    void span(const std::string& names, std::chrono::nanoseconds& target, const std::string& help);
    void span(const std::string& names, std::chrono::milliseconds& target, const std::string& help);

    /// Given to `read`, which throws std::invalid_argument for what it cannot use.
    void value(const std::string& names, std::function<void(const std::string&)> read,
               const std::string& help, const char* type);

    /// These two may not be given together.
    void exclude(const std::string& one, const std::string& other);

    /// What is added from here on stands under this heading in --help.
    void begin_group(const std::string& heading) { group_ = heading; }
    void footer(const std::string& text);

    /// What stands behind RESOURCE is a command of the user: it goes into `target`, and nobody reads options
    /// in it.
    void foreign_command(std::vector<std::string>& target) { foreign_command_ = &target; }

    /// Whether there is an option of that name, and whether it is followed by a value.
    bool has_option(const std::string& name) const;
    bool takes_value(const std::string& name) const;

    /// Takes the foreign command off the end of `words`, which begin with the name of the subcommand.
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

    /// Adds a subcommand, which carry_out() calls once its arguments are read; it returns the exit status.
    Arguments& add(const std::string& name, const std::string& help, std::function<int()> carry_out);

    /// Reads all; none where --help or --version was asked for and printed. Exactly one subcommand must be
    /// there; its options may also stand in front of its name. Throws std::invalid_argument for what is
    /// wrong.
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

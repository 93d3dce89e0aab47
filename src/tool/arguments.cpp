#include "arguments.hpp"

#include "span.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace redlock::tool {

// ---- One subcommand

void Arguments::add(CLI::Option* option, const char* type) {
    if (type != nullptr) option->type_name(type);
    if (!group_.empty()) option->group(group_);
}

void Arguments::text(const std::string& names, std::string& target, const std::string& help,
                     const char* type) {
    add(app_.add_option(names, target, help), type);
}

void Arguments::required_text(const std::string& names, std::string& target, const std::string& help,
                              const char* type) {
    add(app_.add_option(names, target, help)->required(), type);
}

void Arguments::repeated_text(const std::string& names, std::vector<std::string>& target,
                              const std::string& help, const char* type) {
    add(app_.add_option(names, target, help)->allow_extra_args(false), type);
}

void Arguments::flag(const std::string& names, bool& target, const std::string& help) {
    add(app_.add_flag(names, target, help), nullptr);
}

void Arguments::number(const std::string& names, double& target, const std::string& help) {
    add(app_.add_option(names, target, help), nullptr);
}

void Arguments::number(const std::string& names, std::function<void(int)> take, int least, int most,
                       const std::string& help) {
    add(app_.add_option_function<int>(names, std::move(take), help)->check(CLI::Range(least, most)), nullptr);
}

void Arguments::span(const std::string& names, std::chrono::nanoseconds& target, const std::string& help) {
    value(
        names, [&target](const std::string& text) { target = parse_span(text); }, help, "SPAN");
}

void Arguments::span(const std::string& names, std::chrono::milliseconds& target, const std::string& help) {
    const auto read = [&target](const std::string& text) {
        const auto span = parse_span(text);
        const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(span);
        if (whole != span) throw std::invalid_argument{"is finer than a millisecond"};
        target = whole;
    };
    value(names, read, help, "SPAN");
}

void Arguments::value(const std::string& names, std::function<void(const std::string&)> read,
                      const std::string& help, const char* type) {
    const auto name = names.substr(names.rfind(',') + 1);
    const auto told = [read = std::move(read), name](const std::string& text) {
        try {
            read(text);
        } catch (const std::invalid_argument& error) {
            throw CLI::ValidationError(name, "\"" + text + "\" " + error.what());
        }
    };
    add(app_.add_option_function<std::string>(names, told, help), type);
}

void Arguments::exclude(const std::string& one, const std::string& other) {
    app_.get_option(one)->excludes(app_.get_option(other));
}

void Arguments::footer(const std::string& text) {
    app_.footer(text);
}

bool Arguments::takes_value(const std::string& name) const {
    const auto* const option = std::as_const(app_).get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_max() > 0;
}

// ---- All of them

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
    app_->set_version_flag("--version", name + " " + version);
    app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

Arguments& CommandLine::add(const std::string& name, const std::string& help,
                            std::function<int()> carry_out) {
    auto* const app = app_->add_subcommand(name, help);
    return subcommands_.emplace_back(Subcommand{app, Arguments{*app}, std::move(carry_out)}).arguments;
}

std::optional<std::function<int()>> CommandLine::parse(std::vector<std::string> words) {
    try {
        std::ranges::reverse(words);  // as CLI11 wants them
        app_->parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw std::invalid_argument{error.what()};
        (void)app_->exit(error);  // prints what --help or --version is to print
        return std::nullopt;
    }
    return std::ranges::find_if(subcommands_, [](const Subcommand& it) { return it.app->parsed(); })
        ->carry_out;
}

}  // namespace redlock::tool

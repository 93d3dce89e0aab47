#include "value_options.hpp"

#include "text/span.hpp"
#include "text/words.hpp"

#include <stdexcept>
#include <utility>

namespace redlock::tool {
namespace {

/// Returns the first long name in a list such as "-w,--wait,--timeout".
std::string long_name(const std::string& names) {
    const auto begin = names.find("--");
    return begin == names.npos ? names : names.substr(begin, names.find(',', begin) - begin);
}

std::chrono::milliseconds parse_whole_milliseconds(const std::string& text) {
    const auto span = parse_span(text);
    const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(span);
    if (whole != span) throw std::invalid_argument{"is finer than a millisecond"};
    return whole;
}

}  // namespace

CLI::Option* add_value(CLI::App& app, const std::string& names, std::function<void(const std::string&)> read,
                       const std::string& help, const std::string& type) {
    const auto checked = [read = std::move(read), name = long_name(names)](const std::string& text) {
        try {
            read(text);
        } catch (const std::invalid_argument& error) {
            throw CLI::ValidationError(name, "\"" + text + "\" " + error.what());
        }
    };
    return app.add_option_function<std::string>(names, checked, help)->type_name(type);
}

CLI::Option* add_span(CLI::App& app, const std::string& names, std::chrono::nanoseconds& target,
                      const std::string& help) {
    const auto read = [&target](const std::string& text) { target = parse_span(text); };
    return add_value(app, names, read, help, "SPAN");
}

CLI::Option* add_span(CLI::App& app, const std::string& names, std::chrono::milliseconds& target,
                      const std::string& help) {
    const auto read = [&target](const std::string& text) { target = parse_whole_milliseconds(text); };
    return add_value(app, names, read, help, "SPAN");
}

void add_former_name(CLI::App& app, const std::string& former, const std::string& name,
                     std::chrono::milliseconds& target) {
    const auto* const option = app.get_option(name);
    const auto read = [&target, former, name, option](const std::string& text) {
        target = parse_whole_milliseconds(text);
        if (option->count() > 0)
            throw std::invalid_argument{"is given together with " + name + ", the new name of this option"};
        say("the next version will not know " + former + ": use " + name);
    };
    add_value(app, former, read, "", "SPAN")->group("");
}

}  // namespace redlock::tool

#include "value_options.hpp"

#include "text/words.hpp"

#include <cstdlib>
#include <utility>

namespace redlock::tool {

CLI::Option* add_value(CLI::App& app, const std::string& names, std::function<void(const std::string&)> read,
                       const std::string& help, const std::string& type) {
    const auto begin = names.find("--");  // of the first long name, as in "-w,--wait,--timeout"
    const auto name = names.substr(begin, names.find(',', begin) - begin);
    const auto checked = [read = std::move(read), name](const std::string& text) {
        try {
            read(text);
        } catch (const std::invalid_argument& error) {
            throw CLI::ValidationError(name, "\"" + text + "\" " + error.what());
        }
    };
    return app.add_option_function<std::string>(names, checked, help)->type_name(type);
}

std::string variable(const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): see the header
    return value != nullptr && *value != '\0' ? value : otherwise;
}

void add_former_name(CLI::App& app, const std::string& former, const std::string& name,
                     std::chrono::milliseconds& target) {
    const auto* const option = app.get_option(name);
    const auto read = [&target, former, name, option](const std::string& text) {
        target = parse_whole<std::chrono::milliseconds>(text);
        if (option->count() > 0)
            throw std::invalid_argument{"is given together with " + name + ", the new name of this option"};
        say("the next version will not know " + former + ": use " + name);
    };
    add_value(app, former, read, "", "SPAN")->group("");
}

}  // namespace redlock::tool

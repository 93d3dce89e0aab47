#include "value_options.hpp"

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

}  // namespace redlock::tool

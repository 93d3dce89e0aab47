#include "node_arguments.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock::tool {
namespace {

constexpr const char* blank = " \t\r\n";

std::string trimmed(const std::string& text) {
    const auto begin = text.find_first_not_of(blank);
    return begin == text.npos ? std::string{} : text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets it
    return value != nullptr ? value : "";
}

/// Parses an address. An error message says where the address was found.
Endpoint parse(const std::string& uri, const std::string& where) {
    try {
        return Endpoint::parse(uri);
    } catch (const std::invalid_argument& error) {
        std::string text = error.what();
        const std::string prefix = "redlock: ";
        if (text.starts_with(prefix)) text.erase(0, prefix.size());
        throw std::invalid_argument{where + ": " + text};
    }
}

bool everybody_may(mode_t what, const std::string& path) {
    struct stat file {};
    return ::stat(path.c_str(), &file) == 0 && (file.st_mode & what) != 0;
}

/// Throws if everybody may read a file with a password, as ssh does with private keys.
void check_secrecy(const std::string& path) {
    if (everybody_may(S_IROTH, path))
        throw std::invalid_argument{path + ": has a password, and everybody may read it: chmod o-r " + path};
}

/// Throws if everybody may write the file, as ssh does with its configuration. Otherwise any user of the host
/// could redirect this user's locks to other servers.
void check_writers(const std::string& path) {
    if (everybody_may(S_IWOTH, path))
        throw std::invalid_argument{path + ": everybody may write it: chmod o-w " + path};
}

bool has_password(const Endpoint& endpoint) {
    return !endpoint.password.empty() || std::ranges::any_of(endpoint.sentinels, has_password);
}

/// Returns what is in the file. Throws if it cannot be read, or if it is so large that it cannot be a list of
/// nodes. A device may have no end.
std::string content_of(const std::string& path) {
    constexpr std::size_t longest = std::size_t{1024} * 1024;
    std::ifstream file{path};
    std::string text;
    for (char byte = 0; text.size() <= longest && file.get(byte);) text += byte;
    if (!file.is_open() || file.bad()) throw std::invalid_argument{path + ": cannot be read"};
    if (text.size() > longest) throw std::invalid_argument{path + ": has more than 1 MiB"};
    return text;
}

/// Reads a file with one address per line. A '#' at the beginning of a line or behind a blank begins a
/// comment. The file may begin with the byte order mark of UTF-8. `origin` begins the message about a file
/// without an address.
std::vector<Endpoint> read_file(const std::string& path, const std::string& origin = {}) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    auto text = content_of(path);
    if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
    std::istringstream file{text};
    std::vector<Endpoint> endpoints;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        line.insert(0, 1, ' ');
        for (auto at = line.find('#'); at != line.npos; at = line.find('#', at + 1))
            if (line.find_last_of(blank, at) == at - 1) line.erase(at);
        line = trimmed(line);
        if (line.empty()) continue;
        endpoints.push_back(parse(line, path + ":" + std::to_string(number)));
        if (has_password(endpoints.back())) check_secrecy(path);
    }
    if (endpoints.empty()) throw std::invalid_argument{origin + path + ": names no node"};
    check_writers(path);
    return endpoints;
}

/// Removes the first address from a list with commas and returns it. The commas between the Sentinels of one
/// master belong to the address.
std::string cut_address(std::string& list) {
    constexpr std::string_view scheme = "+sentinel://";
    const auto at = list.find(scheme);
    const bool sentinels = at < list.find(',');
    const auto comma = list.find(',', sentinels ? list.find('/', at + scheme.size()) : 0);
    const auto address = list.substr(0, comma);
    list.erase(0, comma == list.npos ? comma : comma + 1);
    return trimmed(address);
}

std::vector<Endpoint> read_variable() {
    std::vector<Endpoint> endpoints;
    int number = 0;
    for (auto list = variable(nodes_variable); !list.empty();) {
        ++number;
        if (const auto uri = cut_address(list); !uri.empty())
            endpoints.push_back(parse(uri, "REDLOCK_NODES, address " + std::to_string(number)));
    }
    return endpoints;
}

/// Returns the path of the user's file of nodes, otherwise of the host's. Returns an empty text if there is
/// neither.
std::string usual_file() {
    std::vector<std::filesystem::path> places;
    if (const auto config = variable("XDG_CONFIG_HOME"); !config.empty())
        places.emplace_back(config);
    else if (const auto home = variable("HOME"); !home.empty())
        places.emplace_back(home + "/.config");
    places.emplace_back("/etc");
    for (const auto& place : places)
        if (std::error_code error; std::filesystem::exists(place / "redlock/nodes", error))
            return place / "redlock/nodes";
    return {};
}

}  // namespace

void NodeArguments::add_to(CLI::App& app) {
    app.option_defaults()->group("Nodes");
    app.add_option("--node", nodes_, "A node, redis://[user[:password]@]host[:port][/db]; may be repeated")
        ->allow_extra_args(false)
        ->type_name("URI");
    const auto read_name = [this](const std::string& text) {
        if (text.empty()) throw std::invalid_argument{"names no file"};
        file_ = text;
    };
    add_value(app, "--nodes-file", read_name,
              "A file with one URI per line; default: the variable REDLOCK_NODES, then "
              "~/.config/redlock/nodes, then /etc/redlock/nodes",
              "FILE");
    add_span(app, "--node-timeout", options_.node_timeout, "How long one node may take in a round (50ms)");
    add_span(app, "--quarantine", options_.quarantine,
             "How long a node that lost its data has no vote (off)");
    app.add_flag("--all-at-once", all_at_once_, "Ask all nodes at once when acquiring");
}

std::vector<Endpoint> NodeArguments::endpoints() const {
    std::vector<Endpoint> result;
    for (const auto& uri : nodes_)
        result.push_back(parse(uri, "--node, address " + std::to_string(result.size() + 1)));
    if (!file_.empty())
        for (auto& endpoint : read_file(file_, "--nodes-file: ")) result.push_back(std::move(endpoint));
    if (result.empty()) result = read_variable();
    if (const auto file = result.empty() ? usual_file() : std::string{}; !file.empty())
        result = read_file(file);
    if (result.empty())
        throw std::invalid_argument{
            "no nodes: give --node or --nodes-file, set REDLOCK_NODES, or write ~/.config/redlock/nodes"};
    return result;
}

NodesOptions NodeArguments::options(Observer* observer) const {
    auto result = options_;
    result.observer = observer;
    if (all_at_once_) result.round = Round::all_at_once;
    return result;
}

}  // namespace redlock::tool

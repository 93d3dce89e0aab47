#include "node_arguments.hpp"

#include "redis/parse_address.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

namespace redlock::tool {
namespace {

constexpr const char* blank = " \t\r\n";

std::string trimmed(const std::string& text) {
    const auto begin = text.find_first_not_of(blank);
    return begin == text.npos ? std::string{} : text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// Parses an address that is a part of `whole`, which decides whether an error message may quote it. The
/// message says where the address was found, and ends with the hint.
Endpoint parse(const std::string& uri, std::string_view whole, const std::string& where,
               const std::string& hint = {}) {
    try {
        return parse_address(uri, !may_have_password(whole));
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument{where + ": " + error.what() + hint};
    }
}

bool has_password(const Endpoint& endpoint) {
    return !endpoint.password.empty() || std::ranges::any_of(endpoint.sentinels, has_password);
}

[[noreturn]] void fail_to_read(const std::string& path, const std::error_code& reason) {
    throw std::invalid_argument{path + ": cannot be read: " + reason.message()};
}

/// Returns what is in a file, and its permissions. Throws if it cannot be read, or if it is so large that it
/// cannot be a list of nodes. A device may have no end.
std::pair<std::string, mode_t> content_of(const std::string& path) {
    constexpr std::size_t longest = std::size_t{1024} * 1024;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "re"), &std::fclose};
    struct stat status {};
    if (!file || ::fstat(::fileno(file.get()), &status) != 0)
        fail_to_read(path, {errno, std::generic_category()});
    std::string text(longest + 1, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get()) != 0) fail_to_read(path, {errno, std::generic_category()});
    if (text.size() > longest) throw std::invalid_argument{path + ": has more than 1 MiB"};
    return {std::move(text), status.st_mode};
}

/// Reads a file with one address per line. A '#' at the beginning of a line or behind a blank begins a
/// comment. The file may begin with the byte order mark of UTF-8. `origin` begins the message about a file
/// without an address.
std::vector<Endpoint> read_file(const std::string& path, const std::string& origin = {}) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    auto [text, permissions] = content_of(path);
    if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
    std::istringstream file{text};
    std::vector<Endpoint> endpoints;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        const auto whole = line;
        line.insert(0, 1, ' ');
        for (auto at = line.find('#'); at != line.npos; at = line.find('#', at + 1))
            if (line.find_last_of(blank, at) == at - 1) line.erase(at);
        const bool cut = line.size() <= whole.size() && may_have_password(whole);
        line = trimmed(line);
        if (line.empty()) continue;
        endpoints.push_back(parse(line, whole, path + ":" + std::to_string(number),
                                  cut ? "; a '#' behind a blank begins a comment, and in a password they are "
                                        "%20 and %23"
                                      : ""));
    }
    // As ssh does with private keys.
    if ((permissions & S_IROTH) != 0 && std::ranges::any_of(endpoints, has_password))
        throw std::invalid_argument{path + ": has a password, and everybody may read it: chmod o-r " + path +
                                    ", or give the secret the mode 0400 (`mode` in Docker, `defaultMode` "
                                    "in Kubernetes), or use REDLOCK_NODES"};
    if (endpoints.empty()) throw std::invalid_argument{origin + path + ": names no node"};
    // As ssh does with its configuration. Otherwise any user of the host could redirect this user's locks to
    // other servers.
    if ((permissions & S_IWOTH) != 0)
        throw std::invalid_argument{path + ": everybody may write it: chmod o-w " + path +
                                    ", or use REDLOCK_NODES"};
    return endpoints;
}

/// Returns true if the text begins with an address that has a scheme.
bool begins_with_scheme(std::string_view text) {
    return text.find("://") < text.find_first_of(",/?@");
}

/// Returns where an address with several servers ends in a list with commas: at a comma behind its path or
/// query, or in front of an address with a scheme.
std::size_t end_of_servers(std::string_view list) {
    const auto servers_end = list.find_first_of("/?", list.find("://") + 3);
    auto comma = list.find(',');
    while (comma < servers_end && !begins_with_scheme(list.substr(comma + 1)))
        comma = list.find(',', comma + 1);
    return comma;
}

/// Removes the first address from a list with commas and returns it. The commas between the Sentinels of one
/// master, and between the servers of one Cluster, belong to the address.
std::string cut_address(std::string& list) {
    const auto first = list.find(',');
    const bool several = std::min(list.find("+sentinel://"), list.find("+cluster://")) < first;
    const auto comma = several ? end_of_servers(list) : first;
    const auto address = list.substr(0, comma);
    list.erase(0, comma == list.npos ? comma : comma + 1);
    return trimmed(address);
}

std::vector<Endpoint> read_variable() {
    std::vector<Endpoint> endpoints;
    int number = 0;
    const auto whole = variable(nodes_variable);
    const auto* const hint = whole.find_first_of(" \t\r\n;@") == whole.npos
                                 ? ""
                                 : "; commas separate the addresses, and a comma in a password is %2C";
    for (auto list = whole; !list.empty();) {
        ++number;
        const auto uri = cut_address(list);
        if (!uri.empty())
            endpoints.push_back(parse(uri, whole, "REDLOCK_NODES, address " + std::to_string(number), hint));
    }
    if (number > 0 && endpoints.empty()) throw std::invalid_argument{"REDLOCK_NODES: names no node"};
    return endpoints;
}

/// Returns the path of the user's file of nodes, otherwise of the host's. Returns an empty text if there is
/// neither. Throws if the system does not say whether a file is there, because the other file may name other
/// nodes, and then two clients could hold one lock. A symbolic link is there even if it leads nowhere.
std::string usual_file() {
    const auto home = variable("HOME");
    auto config = variable("XDG_CONFIG_HOME");
    if (config.empty() && !home.empty()) config = home + "/.config";
    for (const std::filesystem::path place : {config, std::string{"/etc"}}) {
        if (place.empty()) continue;
        const auto file = place / "redlock/nodes";
        std::error_code error;
        const auto status = std::filesystem::symlink_status(file, error);  // not found: ENOENT and ENOTDIR
        if (status.type() == std::filesystem::file_type::none) fail_to_read(file, error);
        if (exists(status)) return file;
    }
    return {};
}

}  // namespace

void NodeArguments::add_to(CLI::App& app) {
    app.option_defaults()->group("Nodes");
    app.add_option("--node", nodes_, "A node, redis://[user[:password]@]host[:port][/db]; may be repeated")
        ->allow_extra_args(false)
        ->type_name("URI");
    app.add_option("--nodes-file", file_,
                   "A file with one URI per line; default: the variable REDLOCK_NODES, then "
                   "~/.config/redlock/nodes, then /etc/redlock/nodes")
        ->type_name("FILE")
        ->check([](const std::string& name) { return name.empty() ? "\"\" names no file" : ""; });
    add_span(app, "--node-timeout", options_.node_timeout, "How long one node may take in a round (50ms)");
    add_span(app, "--quarantine", options_.quarantine,
             "How long a node that lost its data has no vote (off)");
    const auto set_round = [this] { options_.round = Round::all_at_once; };
    app.add_flag_callback("--all-at-once", set_round, "Ask all nodes at once when acquiring");
}

std::vector<Endpoint> NodeArguments::endpoints() const {
    std::vector<Endpoint> result;
    std::string whole;
    for (const auto& uri : nodes_) whole += uri + ' ';
    for (const auto& uri : nodes_)
        result.push_back(parse(uri, whole, "--node, address " + std::to_string(result.size() + 1)));
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
    return result;
}

}  // namespace redlock::tool

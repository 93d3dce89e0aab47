#include "redis/node_config.hpp"

#include "os/os_network.hpp"
#include "redis/connection.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace redlock {
namespace {

/// The Sentinels of one master, all asked at the same time. A minority of them may be cut off together with a
/// former master, and name that one for ever: so more than half have to name the same.
class SentinelQuery {
public:
    explicit SentinelQuery(const NodeConfig& node) : node_(node) {
        for (const auto& sentinel : *node.sentinels)
            connections_.push_back(std::make_unique<Connection>(sentinel, network_, sentinel.find_server(),
                                                                std::size_t{0}, network_.clock().now()));
    }

    /// Blocks for the node's budget at most, and no longer than an answer may be old.
    Resolution::Found run() {
        const auto deadline = network_.clock().now() + std::min<Clock::duration>(node_.node_timeout, longest);
        for (;;) {
            for (std::size_t i = 0; i < connections_.size(); ++i)
                if (connections_[i]) advance(i);
            std::vector<PollEntry> entries;
            for (const auto& it : connections_)
                if (it) entries.push_back(it->poll_entry());
            const auto now = network_.clock().now();
            if (agreed_ || entries.empty() || now >= deadline) break;
            network_.wait(entries, now, deadline);
        }
        return agreed_ ? found() : Resolution::Found{.error = error(), .cause = cause()};
    }

private:
    static constexpr std::chrono::seconds longest{1};

    void advance(std::size_t i) {
        auto& connection = *connections_[i];
        connection.advance();
        if (connection.broken())
            return give_up(i, connection.cause(),
                           connection.cause().message() + " (" + connection.detail() + ")");
        if (!connection.ready()) return;
        if (!connection.used())
            return connection.ask(std::array<std::string_view, 3>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                                                                  node_.endpoint.master});
        if (connection.answers().empty()) return;
        const auto& reply = connection.answers().front();
        if (reply.kind == detail::Reply::Kind::error)
            return give_up(i, detail::cause_of(reply), connection.quoted(reply.text));
        if (reply.kind != detail::Reply::Kind::list)
            return give_up(i, {},
                           reply.kind == detail::Reply::Kind::nil ? "knows no such master"
                                                                  : connection.quoted(reply.text));
        if (++votes_[reply.text] * 2 > connections_.size()) agreed_ = reply.text;
        connections_[i].reset();
    }

    void give_up(std::size_t i, std::error_code cause, const std::string& why) {
        if (cause == Errc::authentication_failed || cause == Errc::permission_denied) {
            refusal_ = cause;
            ++refusing_;
        }
        reasons_ += "; " + (*node_.sentinels)[i].endpoint.name() + ": " + why;
        connections_[i].reset();
    }

    /// A host and a port, a line each.
    Resolution::Found found() const {
        const auto host = agreed_->substr(0, agreed_->find('\n'));
        const auto text = agreed_->substr(std::min(agreed_->size(), host.size() + 1));
        std::uint16_t port = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
        if (error != std::errc{} || end != text.data() + text.size() || port == 0)
            return {.error = "the Sentinels name no address: " + detail::printable(*agreed_)};
        return Resolution::look_up(host, port);
    }

    /// Where no majority is possible without those that do not let us in, waiting does not help.
    std::error_code cause() const {
        const bool possible = (connections_.size() - refusing_) * 2 > connections_.size();
        return possible ? Errc::connection_failed : refusal_;
    }

    std::string error() const {
        std::size_t answered = 0;
        for (const auto& [address, votes] : votes_) answered += votes;
        return "of " + std::to_string(connections_.size()) + " Sentinels " + std::to_string(answered) +
               " named a master, and no majority the same" + reasons_;
    }

    const NodeConfig& node_;
    OsNetwork network_{};
    std::vector<std::unique_ptr<Connection>> connections_{};
    std::map<std::string, std::size_t> votes_{};
    std::optional<std::string> agreed_{};
    std::string reasons_{};
    std::error_code refusal_{};
    std::size_t refusing_ = 0;
};

}  // namespace

NodeConfig NodeConfig::of(Endpoint endpoint, std::chrono::milliseconds node_timeout,
                          std::chrono::milliseconds quarantine) {
    NodeConfig config{
        .endpoint = std::move(endpoint), .node_timeout = node_timeout, .quarantine = quarantine};
    if (config.endpoint.tls.enabled) config.tls = std::make_shared<const TlsContext>(config.endpoint);
    std::vector<NodeConfig> sentinels;
    for (const auto& sentinel : config.endpoint.sentinels) sentinels.push_back(of(sentinel, node_timeout));
    if (!sentinels.empty())
        config.sentinels = std::make_shared<const std::vector<NodeConfig>>(std::move(sentinels));
    return config;
}

std::shared_ptr<Resolution> NodeConfig::find_server() const {
    if (!endpoint.unix_socket.empty()) return Resolution::of_unix_socket(endpoint.unix_socket);
    if (!has_sentinels()) return Resolution::of_host(endpoint.host, endpoint.port);
    if (asks_sentinels) return asks_sentinels();
    return Resolution::in_thread(endpoint.name(), [node = *this] { return SentinelQuery{node}.run(); });
}

}  // namespace redlock

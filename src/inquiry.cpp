#include "inquiry.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace redlock {
namespace {

std::unique_ptr<const TlsContext> tls_of(const Endpoint& endpoint) {
    return endpoint.tls.enabled ? std::make_unique<const TlsContext>(endpoint) : nullptr;
}

std::shared_ptr<Resolution> resolution_of(const Endpoint& endpoint) {
    return endpoint.unix_socket.empty() ? Resolution::of_host(endpoint.host, endpoint.port)
                                        : Resolution::of_unix_socket(endpoint.unix_socket);
}

/// Until there is something to do, or a millisecond after `deadline` at the latest.
void poll_until(const Connection& connection, Clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - boot_clock().now());
    const auto wait = std::clamp<std::chrono::milliseconds>(left, {}, std::chrono::hours{1});
    pollfd socket{connection.fd(), connection.events(), 0};
    (void)::poll(&socket, 1, static_cast<int>(wait.count()));
}

}  // namespace

Inquiry::Inquiry(Endpoint endpoint, std::chrono::milliseconds budget)
    : endpoint_(std::move(endpoint)), tls_(tls_of(endpoint_)), budget_(budget) {}

Inquiry::~Inquiry() = default;

template <class Condition>
void Inquiry::wait(Clock::time_point deadline, Condition over) {
    while (!connection_->broken() && !over()) {
        if (boot_clock().now() >= deadline)
            return connection_->break_off(Errc::timed_out,
                                          connection_->ready() ? std::string{} : "while connecting");
        poll_until(*connection_, deadline);
        connection_->advance();
    }
}

bool Inquiry::connect_by(Clock::time_point deadline) {
    if (!connection_)
        connection_ = std::make_unique<Connection>(endpoint_, tls_.get(), resolution_of(endpoint_), 0,
                                                   budget_, std::chrono::milliseconds{}, boot_clock().now());
    wait(deadline, [this] { return connection_->ready(); });
    return connection_->ready();
}

/// What has come of it.
Answer Inquiry::outcome(Clock::time_point start) const {
    Answer answer{.took = boot_clock().now() - start};
    if (connection_->broken()) {
        answer.cause = connection_->cause();
        answer.detail = connection_->detail();
    } else if (const auto* const reply = connection_->answer()) {
        answer.reply = *reply;
        if (reply->kind != wire::Reply::Kind::error) return answer;
        answer.cause = wire::cause_of(*reply);
        answer.detail = connection_->quoted(reply->text);
    }
    return answer;
}

Answer Inquiry::connect() {
    const auto start = boot_clock().now();
    (void)connect_by(start + budget_);
    return outcome(start);
}

Answer Inquiry::ask(std::span<const std::string_view> words) {
    const auto start = boot_clock().now();
    if (connect_by(start + budget_)) {
        connection_->ask(words);
        wait(start + budget_, [this] { return connection_->answer() != nullptr; });
    }
    return outcome(start);
}

}  // namespace redlock

#include "redis/admin_connection.hpp"

#include <algorithm>
#include <cstddef>

namespace redlock {

AdminConnection::AdminConnection(const Endpoint& endpoint, std::chrono::milliseconds timeout)
    : config_(NodeConfig::of(endpoint, timeout)) {}

template <class Condition>
void AdminConnection::wait(Clock::time_point deadline, Condition over) {
    while (!connection_->broken() && !over()) {
        const auto now = network_.clock().now();
        if (now >= deadline)
            return connection_->fail(Errc::timed_out,
                                     connection_->ready() ? std::string{} : "while connecting");
        auto entry = connection_->poll_entry();
        network_.wait({&entry, 1}, now, deadline);
        connection_->advance();
    }
}

/// Shares the time among the addresses of the host, because the first one may be silent.
bool AdminConnection::connect_by(Clock::time_point deadline) {
    if (connection_) return connection_->ready();
    const auto server = config_.find_server();
    const auto begin = [&](std::size_t first_address) {
        connection_ =
            std::make_unique<Connection>(config_, network_, server, first_address, network_.clock().now());
    };
    begin(0);
    wait(deadline, [&] { return server->done(); });
    if (!server->done()) return false;
    for (;;) {
        const auto tried = connection_->next_address();
        const auto untried = server->addresses().size() - std::min(tried, server->addresses().size());
        const auto now = network_.clock().now();
        wait(now + (deadline - now) / static_cast<int>(untried + 1),
             [&] { return connection_->ready() || connection_->next_address() != tried; });
        if (connection_->ready()) return true;
        if (connection_->next_address() != tried) continue;
        if (connection_->cause() != Errc::timed_out || untried == 0) return false;
        begin(tried);
    }
}

/// Returns the reply, or the reason why there is none.
Answer AdminConnection::outcome(Clock::time_point start) {
    Answer answer{.took = network_.clock().now() - start};
    if (connection_->broken()) {
        answer.cause = connection_->cause();
        answer.detail = connection_->detail();
    } else if (const auto* const answered = connection_->answer()) {
        answer.reply = answered->reply;
        if (answer.reply.kind != detail::Reply::Kind::error) return answer;
        answer.cause = detail::cause_of(answer.reply);
        answer.detail = connection_->quoted(answer.reply.text);
    }
    return answer;
}

Answer AdminConnection::connect() {
    const auto start = network_.clock().now();
    (void)connect_by(start + config_.node_timeout);
    return outcome(start);
}

Answer AdminConnection::ask(std::span<const std::string_view> words) {
    const auto start = network_.clock().now();
    if (connect_by(start + config_.node_timeout)) {
        connection_->ask(words);
        wait(start + config_.node_timeout, [this] { return connection_->answer() != nullptr; });
    }
    return outcome(start);
}

}  // namespace redlock

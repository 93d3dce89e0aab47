#include "admin_connection.hpp"

namespace redlock::tool {

AdminConnection::AdminConnection(const Endpoint& endpoint, std::chrono::milliseconds timeout)
    : config_(NodeConfig::of(endpoint, timeout)),
      servers_(endpoint.seeds.empty() ? std::vector{std::make_shared<const NodeConfig>(config_)}
                                      : RedisCluster{config_}.servers()) {}

void AdminConnection::wait(Clock::time_point deadline, const std::function<bool()>& over) {
    while (!connection_->broken() && !over()) {
        const auto now = network_.clock().now();
        if (now >= deadline)
            return connection_->fail(Errc::timed_out,
                                     connection_->ready() ? std::string{} : connection_->unfinished_step());
        auto entry = connection_->poll_entry();
        network_.wait({&entry, 1}, now, deadline);
        connection_->advance();
    }
}

bool AdminConnection::connect_by(Clock::time_point deadline) {
    if (connection_) return connection_->ready();
    for (tried_ = 0;; ++tried_) {
        const auto& server = *servers_[tried_];
        const auto now = network_.clock().now();
        const auto untried = servers_.size() - tried_;
        connection_ =
            std::make_unique<Connection>(server, network_, Server::Addresses{server.find_server()}, now);
        wait(now + (deadline - now) / untried, [this] { return connection_->ready(); });
        if (connection_->ready() || untried == 1) return connection_->ready();
    }
}

Answer AdminConnection::ask(const Words& words) {
    const auto start = network_.clock().now();
    if (connect_by(start + config_.node_timeout) && !words.empty()) {
        connection_->send_words(words);
        wait(start + config_.node_timeout, [this] { return connection_->pending().answer() != nullptr; });
    }
    Answer answer{.took = network_.clock().now() - start};
    if (connection_->broken()) {
        answer.cause = connection_->cause();
        answer.detail = connection_->detail();
    } else if (const auto* const answered = connection_->pending().answer()) {
        answer.reply = answered->reply;
        if (answer.reply.kind != detail::Reply::Kind::error) return answer;
        answer.cause = detail::cause_of(answer.reply);
        answer.detail = connection_->quoted(answer.reply.text);
    }
    return answer;
}

}  // namespace redlock::tool

// What a Connection must conclude from the bytes of a server, according to an independent reader.
#pragma once

#include "support/reply_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::fuzz {

using support::RedisReply;
using support::ReplyReader;

class Expectation {
public:
    enum class Step : std::uint8_t { auth, select, ping, server };

    explicit Expectation(std::deque<Step> handshake)
        : handshake_(std::move(handshake)), pending_(handshake_.size()), sent_(pending_) {}

    void asked_for_run_id() {
        handshake_ = {Step::server};
        sent(1);
        awaited_ = 0;
    }
    void sent(std::size_t commands) {
        sent_ += commands;
        pending_ += commands;
        awaited_ = commands;
        answers_.clear();
    }
    void failed() { broken_ = true; }

    void received(std::string_view bytes) {
        reader_.take(bytes);
        for (RedisReply reply; !broken_ && !ambiguous_;) switch (reader_.next(reply)) {
                case ReplyReader::Progress::reply: take(reply); break;
                case ReplyReader::Progress::incomplete: return;
                case ReplyReader::Progress::protocol_error: broken_ = true; break;
                case ReplyReader::Progress::ambiguous: ambiguous_ = true; break;
            }
    }

    bool ready() const { return !broken_ && handshake_.empty(); }
    bool broken() const { return broken_; }
    bool ambiguous() const { return ambiguous_; }
    std::size_t pending() const { return pending_; }
    const std::vector<RedisReply>& answers() const { return answers_; }
    /// Returns the number of commands that the connection has sent, including those of the handshake.
    std::size_t sent_in_all() const { return sent_; }

private:
    void take(const RedisReply& reply) {
        if (pending_ == 0) {
            broken_ = true;
            return;
        }
        --pending_;
        if (!handshake_.empty()) return take_handshake_reply(reply);
        if (pending_ < awaited_) answers_.push_back(reply);
    }

    void take_handshake_reply(const RedisReply& reply) {
        const auto step = handshake_.front();
        handshake_.pop_front();
        broken_ = !accepts(step, reply);
    }

    static bool accepts(Step step, const RedisReply& reply) {
        const auto value_of = [&](const std::string& name) {
            if (reply.kind != RedisReply::Kind::bulk) return std::string{};
            const auto text = "\n" + reply.text;
            const auto at = text.find("\n" + name);
            if (at == std::string::npos) return std::string{};
            const auto begin = at + 1 + name.size();
            return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
        };
        if (step == Step::server) return !value_of("run_id:").empty();
        const auto first_word = reply.text.substr(0, reply.text.find(' '));
        if (reply.is_error())
            return step == Step::ping && (first_word == "NOPERM" || first_word == "MISCONF" ||
                                          reply.text.starts_with("ERR unknown command"));
        return reply.kind == RedisReply::Kind::status;
    }

    ReplyReader reader_{};
    std::deque<Step> handshake_;
    std::size_t pending_;
    std::size_t sent_;
    std::size_t awaited_ = 0;
    bool broken_ = false;
    bool ambiguous_ = false;
    std::vector<RedisReply> answers_{};
};

}  // namespace redlock::fuzz

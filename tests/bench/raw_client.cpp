#include "raw_client.hpp"

#include <hiredis/hiredis.h>
#include <redlock/endpoint.hpp>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock::bench {
namespace {

/// Returns 40 digits, the only owner of a client.
std::string any_owner() {
    std::random_device random;
    std::string owner;
    while (owner.size() < 40) owner += static_cast<char>('0' + random() % 10);
    return owner;
}

constexpr auto* compare_and_delete =
    "if redis.call('get',KEYS[1]) == ARGV[1] then "
    "return redis.call('del',KEYS[1]) "
    "else return 0 end";
constexpr auto* compare_and_delete_sha1 = "ae3671744a5dbb24ea37ef607b8b10ac7856d43e";

redisContext* connected(const std::string& uri) {
    const auto endpoint = Endpoint::parse(uri);
    auto* const context = endpoint.unix_socket.empty() ? redisConnect(endpoint.host.c_str(), endpoint.port)
                                                       : redisConnectUnix(endpoint.unix_socket.c_str());
    if (context == nullptr) throw std::bad_alloc{};
    return context;
}

/// Takes ownership of the reply. Returns true if it is OK or 1.
bool grants(void* taken) {
    auto* const reply = static_cast<redisReply*>(taken);
    if (reply == nullptr) throw std::runtime_error("raw hiredis: the connection broke");
    const auto type = reply->type;
    const bool grants = type == REDIS_REPLY_STATUS || (type == REDIS_REPLY_INTEGER && reply->integer == 1);
    freeReplyObject(reply);
    if (type == REDIS_REPLY_ERROR) throw std::runtime_error("raw hiredis: the server answered with an error");
    return grants;
}

}  // namespace

void RawClient::FreeContext::operator()(redisContext* context) const noexcept {
    redisFree(context);
}

RawClient::Command::Command(Words the_words) : words(std::move(the_words)) {
    for (const auto& word : words) {
        texts.push_back(word.c_str());
        lengths.push_back(word.size());
    }
}

RawClient::RawClient(const std::vector<std::string>& uris, Way way, const std::vector<std::string>& resources)
    : LocalClient(way == Way::sequential ? "raw sequential" : "raw multiplexed"),
      way_(way),
      owner_(any_owner()),
      granted_(resources.size()) {
    for (const auto& resource : resources) {
        sets_.emplace_back(Words{"SET", resource, owner_, "NX", "PX", "10000"});
        releases_.emplace_back(Words{"EVALSHA", compare_and_delete_sha1, "1", resource, owner_});
    }
    for (const auto& uri : uris) {
        contexts_.emplace_back(connected(uri));
        auto* const context = contexts_.back().get();
        if (context->err != 0) throw std::runtime_error("raw hiredis: " + uri + ": " + context->errstr);
        (void)grants(redisCommand(context, "SCRIPT LOAD %s", compare_and_delete));
    }
}

bool RawClient::acquire() {
    ask(sets_);
    return std::ranges::all_of(granted_,
                               [&](std::size_t granted) { return granted >= contexts_.size() / 2 + 1; });
}

void RawClient::ask(const std::vector<Command>& commands) {
    std::ranges::fill(granted_, 0U);
    if (way_ == Way::sequential) return ask_in_turn(commands.front());
    ask_all_at_once(commands);
}

void RawClient::ask_in_turn(const Command& command) {
    for (const auto& context : contexts_) {
        auto** const texts = const_cast<const char**>(command.texts.data());
        auto* const reply = redisCommandArgv(context.get(), static_cast<int>(command.texts.size()), texts,
                                             command.lengths.data());
        granted_.front() += grants(reply) ? 1U : 0U;
    }
}

void RawClient::ask_all_at_once(const std::vector<Command>& commands) {
    for (const auto& context : contexts_) {
        for (const auto& command : commands) {
            auto** const texts = const_cast<const char**>(command.texts.data());
            redisAppendCommandArgv(context.get(), static_cast<int>(command.texts.size()), texts,
                                   command.lengths.data());
        }
        for (int done = 0; done == 0;)
            if (redisBufferWrite(context.get(), &done) != REDIS_OK)
                throw std::runtime_error("raw hiredis: the connection broke");
    }
    for (const auto& context : contexts_)
        for (auto& granted : granted_) {
            void* reply = nullptr;
            redisGetReply(context.get(), &reply);
            granted += grants(reply) ? 1U : 0U;
        }
}

}  // namespace redlock::bench

#include "raw_nodes.hpp"

#include <hiredis/hiredis.h>
#include <redlock/endpoint.hpp>

#include <new>
#include <random>
#include <stdexcept>
#include <utility>

namespace redlock::bench {
namespace {

constexpr auto* compare_and_delete_script =
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

std::string any_owner() {
    std::random_device random;
    std::string owner;
    while (owner.size() < 40) owner += static_cast<char>('0' + random() % 10);
    return owner;
}

RawCommand::RawCommand(std::vector<std::string> the_words) : words(std::move(the_words)) {
    for (const auto& word : words) {
        texts.push_back(word.c_str());
        lengths.push_back(word.size());
    }
}

RawCommand RawCommand::set(const std::string& resource, const std::string& owner) {
    return RawCommand{{"SET", resource, owner, "NX", "PX", "10000"}};
}

RawCommand RawCommand::compare_and_delete(const std::string& resource, const std::string& owner) {
    return RawCommand{{"EVALSHA", compare_and_delete_sha1, "1", resource, owner}};
}

void RawNodes::FreeContext::operator()(redisContext* context) const noexcept {
    redisFree(context);
}

RawNodes::RawNodes(const std::vector<std::string>& uris) {
    for (const auto& uri : uris) {
        contexts_.emplace_back(connected(uri));
        auto* const context = contexts_.back().get();
        if (context->err != 0) throw std::runtime_error("raw hiredis: " + uri + ": " + context->errstr);
        (void)grants(redisCommand(context, "SCRIPT LOAD %s", compare_and_delete_script));
    }
}

void RawNodes::send_in_turn(RawCommand& command) {
    command.granted = 0;
    for (const auto& context : contexts_) {
        auto* const reply = redisCommandArgv(context.get(), static_cast<int>(command.texts.size()),
                                             command.texts.data(), command.lengths.data());
        command.granted += grants(reply) ? 1U : 0U;
    }
}

void RawNodes::send_to_all(const std::vector<RawCommand*>& commands) {
    for (auto* const command : commands) command->granted = 0;
    for (const auto& context : contexts_) {
        for (auto* const command : commands)
            redisAppendCommandArgv(context.get(), static_cast<int>(command->texts.size()),
                                   command->texts.data(), command->lengths.data());
        for (int done = 0; done == 0;)
            if (redisBufferWrite(context.get(), &done) != REDIS_OK)
                throw std::runtime_error("raw hiredis: the connection broke");
    }
    for (const auto& context : contexts_)
        for (auto* const command : commands) {
            void* reply = nullptr;
            redisGetReply(context.get(), &reply);
            command->granted += grants(reply) ? 1U : 0U;
        }
}

}  // namespace redlock::bench

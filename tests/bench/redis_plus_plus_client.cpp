#include "redis_plus_plus_client.hpp"

#if defined(REDLOCK_BENCH_REDIS_PLUS_PLUS)
#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>
#include <redlock/endpoint.hpp>

#include <chrono>
#include <optional>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<sw::redis::Redis> connected(const std::string& uri) {
    const auto endpoint = Endpoint::parse(uri);
    sw::redis::ConnectionOptions options;
    options.connect_timeout = 50ms;
    options.socket_timeout = 50ms;
    if (endpoint.unix_socket.empty()) {
        options.host = endpoint.host;
        options.port = endpoint.port;
    } else {
        options.type = sw::redis::ConnectionType::UNIX;
        options.path = endpoint.unix_socket;
    }
    return std::make_shared<sw::redis::Redis>(options);
}

std::vector<std::shared_ptr<sw::redis::Redis>> connected(const std::vector<std::string>& uris) {
    std::vector<std::shared_ptr<sw::redis::Redis>> masters;
    for (const auto& uri : uris) masters.push_back(connected(uri));
    return masters;
}

class RedisPlusPlusClient final : public LocalClient {
public:
    RedisPlusPlusClient(const std::vector<std::string>& uris, const std::string& resource)
        : LocalClient("redis-plus-plus"),
          masters_(connected(uris)),
          mutex_(masters_.begin(), masters_.end(), resource) {}

    /// The library throws exceptions for errors, even for those of a single node.
    bool acquire() override {
        try {
            lock_.emplace(mutex_, std::defer_lock);
            return lock_->try_lock(10s);
        } catch (const sw::redis::Error&) {
            return false;
        }
    }

    void release() override {
        try {
            lock_->unlock();
        } catch (const sw::redis::Error&) {
        }
    }

private:
    using Mutex = sw::redis::RedLockMutex;
    std::vector<std::shared_ptr<sw::redis::Redis>> masters_;
    Mutex mutex_;
    std::optional<sw::redis::RedLock<Mutex>> lock_{};
};

}  // namespace

bool has_redis_plus_plus() noexcept {
    return true;
}

std::unique_ptr<LocalClient> redis_plus_plus_client(const std::vector<std::string>& uris,
                                                    const std::string& resource) {
    return std::make_unique<RedisPlusPlusClient>(uris, resource);
}

}  // namespace redlock::bench

#else

namespace redlock::bench {

bool has_redis_plus_plus() noexcept {
    return false;
}

std::unique_ptr<LocalClient> redis_plus_plus_client(const std::vector<std::string>&, const std::string&) {
    return nullptr;
}

}  // namespace redlock::bench

#endif

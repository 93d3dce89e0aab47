// A measured client. It acquires a lock on N nodes and releases it again.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {

/// The work of one batch: a number of ops, or a duration, whichever ends first.
struct Work {
    std::size_t ops = std::numeric_limits<std::size_t>::max();
    std::chrono::milliseconds span = std::chrono::hours{1};
};

/// The measurements of one batch.
struct Batch {
    std::vector<double> microseconds{};  ///< of each successful op
    std::size_t failed = 0;              ///< ops that did not get the lock
};

class Client {
public:
    explicit Client(std::string name) : name_(std::move(name)) {}
    virtual ~Client() = default;
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    const std::string& name() const noexcept { return name_; }
    virtual Batch run(const Work& work) = 0;

private:
    std::string name_;
};

/// A client in this process.
class LocalClient : public Client {
public:
    using Client::Client;

    /// An op is one acquire() and one release().
    virtual bool acquire() = 0;
    virtual void release() = 0;

    Batch run(const Work& work) final;
};

}  // namespace redlock::bench

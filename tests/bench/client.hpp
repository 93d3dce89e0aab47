// A measured client. It acquires a lock on N nodes and releases it again.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {

/// The work of one batch: a number of ops, or a duration, whichever ends first.
///
/// Without `interval`, each op begins when the one before it has ended. With it, ops *arrive* at fixed
/// instants, whether earlier ops have ended or not, as the requests of users do. Then the time of an op
/// counts from its arrival, also if it could not begin at once. Otherwise a slow op would hide the time for
/// which the ops behind it had to wait.
struct Work {
    std::size_t ops = std::numeric_limits<std::size_t>::max();
    std::chrono::milliseconds span = std::chrono::hours{1};
    std::chrono::nanoseconds interval{};  ///< from one arrival to the next; zero: no arrivals
    std::chrono::nanoseconds first{};     ///< from the beginning of the batch to the first arrival
};

/// The measurements of one batch.
struct Batch {
    std::vector<double> microseconds{};  ///< of each successful op
    std::size_t failed = 0;              ///< ops that did not get the lock
};

class Client : detail::NotCopied {
public:
    explicit Client(std::string name) : name_(std::move(name)) {}
    virtual ~Client() = default;

    const std::string& name() const noexcept { return name_; }
    virtual Batch run(const Work& work) = 0;
    /// Returns true if run() heeds Work::interval.
    virtual bool heeds_arrivals() const noexcept { return false; }
    /// Returns true if the client is in this process.
    virtual bool is_local() const noexcept { return true; }

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
    bool heeds_arrivals() const noexcept final { return true; }
};

}  // namespace redlock::bench

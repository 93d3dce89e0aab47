// Names that blocks of code in documents use without declaring them, because they are self-explanatory in a
// text.
#pragma once

#include <redlock/async_leader.hpp>
#include <redlock/async_lock.hpp>
#include <redlock/async_semaphore.hpp>
#include <redlock/detail/quorum_round.hpp>
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace documents {

using namespace std::chrono_literals;

extern redlock::RedisNodes nodes;
extern redlock::Lock lock;

struct Order {};
extern Order order;
extern std::stop_token stop;
void charge(const Order&);
void deliver(const Order&);
void charge_the_order();
void export_the_orders();
void log(const std::string&);
void busy();
void print_the_report(const std::stop_token&);
bool write_a_page();
void bill_the_next(std::uint64_t fencing_token);

struct Store {
    std::string read(const Order&, std::uint64_t fencing_token);
    void write(const Order&, std::uint64_t fencing_token);
    void write(const Order&, const std::string& text, std::uint64_t fencing_token);
};
extern Store store;

struct Histogram {
    void observe(std::chrono::nanoseconds);
};
extern std::map<redlock::Verb, Histogram> rounds;

// For the examples of event loops.
struct MyLoop final : redlock::EventLoop {
    void watch(int fd, bool reads, bool writes) override;
    void forget(int fd) noexcept override;
    void wake_after(std::chrono::nanoseconds delay) noexcept override;
};
extern redlock::AsyncNodes loop_nodes;

// For the examples in detail/.
extern redlock::Clock& clock;
extern redlock::detail::QuorumRound round;
void check_out(std::size_t node);
void check_in(std::size_t node);
void wait(redlock::Clock::time_point until);

}  // namespace documents

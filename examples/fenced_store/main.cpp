// A holder was paused for longer than its ttl. What prevents it from overwriting the data of the next holder?
//
//     build/release/tests/support/with_redis_nodes build/release/examples/fenced_store/fenced_store
//
// The lock cannot prevent that. The store must do it, with the fencing tokens that the lock provides. A and B
// add to a balance, each of them under the lock. A is paused between its read and its write, and B acquires
// the lock meanwhile. The exit status is 0 only if a deposit was lost without fencing, and none was lost with
// it.
#include "../node_list.hpp"
#include "store.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;
using fenced_store::Store;

constexpr auto* account = "account:7";

enum class Fencing : bool { off, on };

/// Adds to the balance in separate steps, so that another holder can act between them.
class Holder {
public:
    Holder(std::string name, redlock::RedisNodes& nodes, Store& store, Fencing fencing)
        : name_(std::move(name)),
          lock_(nodes, account, {.ttl = 500ms, .fencing = true}),
          store_(store),
          fencing_(fencing) {}

    void acquire_and_read() {
        say("asks for the lock");
        const auto acquired = lock_.acquire_for(10s);
        if (!acquired) throw std::runtime_error("no lock: " + acquired.message());
        const auto content = fencing_ == Fencing::on ? store_.read(account, lock_.fencing_token()).content
                                                     : store_.read_unfenced(account);
        balance_ = std::stoi(content.value());
        say("has the lock, fencing token " + std::to_string(lock_.fencing_token()) + ", and reads " +
            std::to_string(balance_));
    }

    /// Stands for any pause of a process, which can happen at any instruction: the migration of a virtual
    /// machine, a laptop that sleeps, a garbage collection.
    void be_paused() const {
        say("is paused for longer than its ttl");
        while (lock_.valid()) std::this_thread::sleep_for(lock_.remaining() + 1ms);
    }

    /// Returns false if the store refused the write because a later holder has accessed the row.
    bool write(int amount) {
        const auto balance = std::to_string(balance_ + amount);
        if (fencing_ == Fencing::off) store_.write_unfenced(account, balance);
        const bool accepted =
            fencing_ == Fencing::off || store_.write(account, balance, lock_.fencing_token()).accepted;
        say("writes " + balance + (accepted ? "" : ": refused, the store was shown a newer token"));
        (void)lock_.release();  // the lock may have expired by now
        return accepted;
    }

private:
    void say(const std::string& what) const { std::cout << "    " << name_ << ' ' << what << std::endl; }

    std::string name_;
    redlock::Lock lock_;
    Store& store_;
    Fencing fencing_;
    int balance_ = 0;
};

/// Returns the final balance, which is 160 if no deposit was lost.
int deposit_10_and_50(redlock::RedisNodes& nodes, Store& store, Fencing fencing) {
    store.write_unfenced(account, "100");
    Holder a{"A", nodes, store, fencing};
    Holder b{"B", nodes, store, fencing};
    a.acquire_and_read();
    a.be_paused();
    b.acquire_and_read();
    const bool in_time = a.write(10);
    (void)b.write(50);
    if (!in_time) {
        a.acquire_and_read();
        (void)a.write(10);
    }
    const auto balance = std::stoi(store.read_unfenced(account).value());
    std::cout << "    the balance is " << balance << "\n";
    return balance;
}

}  // namespace

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    Store store{":memory:"};
    std::cout << "The balance is 100; A adds 10, B adds 50. Without fencing:\n";
    const int unfenced = deposit_10_and_50(nodes, store, Fencing::off);
    std::cout << "With fencing:\n";
    const int fenced = deposit_10_and_50(nodes, store, Fencing::on);
    const bool as_promised = unfenced == 150 && fenced == 160;
    std::cout << (as_promised ? "A deposit was lost without fencing, and none with it.\n"
                              : "NOT as promised.\n");
    return as_promised ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << "fenced_store: " << error.what() << '\n';
    return 2;
}

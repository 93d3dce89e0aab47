// A real redlock::Semaphore in a simulated process. The checker expects that all semaphores of one name
// together have at most as many holders as slots.
#pragma once

#include "checker.hpp"
#include "client.hpp"
#include "sim_loop.hpp"

#include <redlock/async_semaphore.hpp>
#include <redlock/semaphore.hpp>

#include <string>
#include <utility>

namespace redlock::sim {

class CheckedSemaphore final : public Checker::Holder, detail::NotCopied {
public:
    CheckedSemaphore(Client& client, std::string name, std::size_t limit, LockOptions options)
        : client_(client), name_(std::move(name)), semaphore_(client, name_, limit, std::move(options)) {
        client_.checker().add(*this, limit);
    }
    ~CheckedSemaphore() { client_.checker().remove(*this); }

    OfClient<Semaphore, AsyncSemaphore>* operator->() noexcept { return &semaphore_; }

    // ---- For the checker.
    const std::string& name() const override { return name_; }
    bool check_valid() override {
        const Process::NoFaults no_faults{client_.process()};
        return client_.process().alive() && semaphore_.valid();
    }

private:
    Client& client_;
    std::string name_;
    OfClient<Semaphore, AsyncSemaphore> semaphore_;
};

}  // namespace redlock::sim

#include "race.hpp"

#include "holder_process.hpp"
#include "store.hpp"

#include "support/wait_until.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <stdexcept>

namespace fenced_store {

Race::Race(redlock::support::Cluster& nodes, Writing writing) : nodes_(nodes), writing_(writing) {
    Store{file_}.write_unfenced(account, std::to_string(before));
}

void Race::run() {
    HolderProcess a{deposit_of_a, writing_, Pause::before_the_write, file_, nodes_.uri_list()};
    retell_a_line(a, "A");
    a.stop();
    say("   A is stopped (SIGSTOP) before it writes");
    let_the_lock_expire();
    HolderProcess b{deposit_of_b, writing_, Pause::none, file_, nodes_.uri_list()};
    finish(b, "B");
    a.wake();
    say("   A is woken (SIGCONT) and goes on where it was");
    finish(a, "A");
    say("   the balance is " + std::to_string(balance()));
}

int Race::balance() {
    return std::stoi(Store{file_}.read(account).value());
}

void Race::let_the_lock_expire() {
    const auto expired = [](const auto& node) { return node.command({"EXISTS", account}) == "0"; };
    if (!redlock::support::wait_until([&] { return std::ranges::all_of(nodes_, expired); }))
        throw std::runtime_error("the lock of a holder that was stopped does not expire");
    say("   A's lock has expired on all nodes");
}

void Race::retell_a_line(HolderProcess& holder, const std::string& name) {
    const auto line = holder.hear();
    if (!line) throw std::runtime_error("holder " + name + " ended early");
    refused_ = refused_ || line->find("refused") != std::string::npos;
    say(name + "  " + *line);
}

void Race::finish(HolderProcess& holder, const std::string& name) {
    while (const auto line = holder.hear()) {
        refused_ = refused_ || line->find("refused") != std::string::npos;
        say(name + "  " + *line);
    }
    if (holder.wait() != 0) throw std::runtime_error("holder " + name + " failed");
}

void Race::say(const std::string& what) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    std::cout << std::fixed << std::setprecision(3) << std::setw(9) << elapsed.count() << " s  " << what
              << std::endl;
}

}  // namespace fenced_store

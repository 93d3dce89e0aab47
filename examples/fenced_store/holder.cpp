#include "holder.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <iostream>
#include <stdexcept>

namespace fenced_store {

namespace {

using namespace std::chrono_literals;

void say(const std::string& what) {
    std::cout << what << std::endl;
}

sigset_t waking() {
    sigset_t result;
    ::sigemptyset(&result);
    ::sigaddset(&result, SIGCONT);
    return result;
}

/// Until this process was stopped and woken. A virtual machine that is moved, a laptop that sleeps or a
/// garbage collector does the same to a process, at any instruction.
void be_paused() {
    const auto signals = waking();
    const timespec patience{30, 0};
    int woken_by = 0;
    do {
        woken_by = ::sigtimedwait(&signals, nullptr, &patience);
    } while (woken_by < 0 && errno == EINTR);  // to be stopped ends the wait; the signal comes after that
    if (woken_by != SIGCONT) throw std::runtime_error("nobody paused me");
}

}  // namespace

void prepare_for_pause() {
    const auto signals = waking();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Holder::Holder(const std::filesystem::path& file, const std::vector<std::string>& uris, Writing writing,
               Pause pause)
    : store_(file),
      nodes_(uris),
      lock_(nodes_, account, {.ttl = ttl, .fencing = true}),
      writing_(writing),
      pause_(pause) {}

void Holder::deposit(int amount) {
    while (!deposit_once(amount)) {
    }
    (void)lock_.release();  // of one that has lapsed there is nothing left
}

bool Holder::deposit_once(int amount) {
    acquire();
    const auto balance = std::stoi(store_.read(account).value());
    if (!lock_.valid()) return false;
    say("holds the lock, fencing token " + std::to_string(lock_.fencing_token()) + "; reads " +
        std::to_string(balance));
    // Here no look at the clock helps any more.
    if (pause_ == Pause::before_the_write) be_paused();
    pause_ = Pause::none;
    return write(std::to_string(balance + amount));
}

void Holder::acquire() {
    const auto acquired = lock_.acquire_for(20s);
    if (!acquired) throw std::runtime_error("no lock: " + acquired.message());
}

bool Holder::write(const std::string& balance) {
    if (writing_ == Writing::unfenced) {
        store_.write_unfenced(account, balance);
        say("writes " + balance);
        return true;
    }
    const auto answer = store_.write(account, balance, lock_.fencing_token());
    if (answer)
        say("writes " + balance + ": accepted");
    else
        say("writes " + balance + ": refused, the store has seen token " +
            std::to_string(answer.newest_fencing_token) + "; starts over");
    return answer.accepted;
}

}  // namespace fenced_store

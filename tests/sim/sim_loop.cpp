#include "sim_loop.hpp"

#include <algorithm>

namespace redlock::sim {

/// An operation that is under way.
struct SimLoop::Call {
    Operation operation;
    Task* waits;
    bool begun = false;
    std::optional<Result> result{};
    std::optional<Stopwatch> disturbed{};
};

SimLoop::SimLoop(Client& client, ProcessNetwork& network, Rng rng, Disturbances disturbs)
    : client_(client), process_(client.process()), network_(network), rng_(rng), disturbs_(disturbs) {
    nodes_.emplace(client.nodes(), *this, client.clock(), client.entropy());
    process_.spawn([this] { run(); }, Service::background);
}

// ---- The loop

void SimLoop::run() {
    fiber_ = process_.current();
    for (const auto& [fd, it] : watched_) it.channel->listen(fiber_);
    try {
        for (;;) {
            while (!is_due()) process_.wait_until(wake_at_);
            process_.fault_point();
            process_.check_alive();
            const std::lock_guard in_loop{mutex_};
            turn();
        }
    } catch (const Process::Crashed&) {
        const Process::IgnoreCrash ignore_crash{process_};
        const std::lock_guard in_loop{mutex_};
        network_.abandon();
        nodes_->shut_down();
        throw;
    }
}

bool SimLoop::is_due() const {
    return process_.now() >= wake_at_ ||
           std::ranges::any_of(watched_, [](const auto& it) { return it.second.is_ready(); });
}

/// Handles the events in random order. Superfluous calls of ready() and wake() do no harm.
void SimLoop::turn() {
    std::vector<int> found;
    for (const auto& [fd, it] : watched_)
        if (it.is_ready() || rng_.chance(0.01)) found.push_back(fd);
    constexpr int timer = -1;
    if (process_.now() >= wake_at_ || rng_.chance(0.01)) found.push_back(timer);
    while (!found.empty()) {
        const auto it = found.begin() + static_cast<std::ptrdiff_t>(rng_.below(found.size()));
        const int fd = *it;
        found.erase(it);
        if (fd == timer) {
            wake_at_ = Clock::never();
            wake();
        } else if (watched_.contains(fd)) {
            forget(fd);
            ready(fd);
        }
        note_suspension();
        if (rng_.chance(disturbs_.operation)) disturb();
    }
    if (rng_.chance(disturbs_.all)) restart();
}

void SimLoop::watch(int fd, bool reads, bool writes) {
    forget(fd);
    if (!reads && !writes) return;
    auto* const channel = network_.channel_of(fd);
    watched_.emplace(fd, Watched{channel, reads, writes});
    channel->listen(fiber_);
    if (fiber_ && process_.current() != fiber_) process_.wake(*fiber_);
}

void SimLoop::forget(int fd) noexcept {
    const auto it = watched_.find(fd);
    if (it == watched_.end()) return;
    it->second.channel->listen(nullptr);
    watched_.erase(it);
}

void SimLoop::wake_after(nanoseconds delay) noexcept {
    wake_at_ = delay == delay.max() ? Clock::never() : process_.now() + delay;
    if (fiber_ && process_.current() != fiber_) process_.wake(*fiber_);
}

// ---- Operations

/// The mutex keeps the loop from using the call after its end.
Result SimLoop::await(Operation operation, const std::stop_token& stop) {
    const auto it = std::make_shared<Call>(Call{std::move(operation), process_.current()});
    struct Registration {
        Registration(SimLoop& its_loop, const std::shared_ptr<Call>& its_call)
            : loop(its_loop), call(its_call) {
            loop.call([this] { loop.calls_.push_back(call); });
        }
        ~Registration() {
            loop.call([this] { std::erase(loop.calls_, call); });
        }
        SimLoop& loop;
        const std::shared_ptr<Call>& call;
    };
    const Registration registration{*this, it};
    call([&] {
        it->operation.begin([this, it](Result result) { end(*it, std::move(result)); });
        it->begun = true;
        has_begun({.is_under_way = [it] { return !it->result; },
                   .disturb = [this, it](bool destroys) { disturb(*it, destroys); }});
    });
    // Another thread requests the stop, so the operation is cancelled by this fiber.
    const std::stop_callback alarm{stop, [&] { process_.wake(*it->waits); }};
    while (!it->result) {
        if (stop.stop_requested() && !it->disturbed) call([&] { disturb(*it, false); });
        if (!it->result) process_.wait_until(Clock::never());
    }
    process_.check_alive();
    return *std::move(it->result);
}

/// Is called as the completion.
void SimLoop::end(Call& call, Result result) {
    auto& checker = client_.checker();
    checker.expect(call.begun && !call.result, Rule::one_completion, client_.name());
    // The attempt, its undoing, and the command that leaves the queue, whose reply is not awaited.
    const std::chrono::nanoseconds node_timeout = client_.nodes().node_timeout();
    const auto longest = 2 * node_timeout + node_timeout / 8;
    if (process_.alive() && call.disturbed && !call.disturbed->within(longest))
        checker.violated(Rule::ends_in_time, client_.name() + " in an operation that was cancelled");
    call.result = std::move(result);
    process_.wake(*call.waits);
    if (rng_.chance(disturbs_.operation)) disturb();
}

void SimLoop::has_begun(Target target) {
    if (!step_ || step_->target || step_->fiber != process_.current()) return;
    step_->target = std::move(target);
    note_suspension();
}

void SimLoop::note_suspension() {
    if (!step_ || !step_->target || !step_->target->is_under_way() || --step_->suspensions > 0) return;
    const auto step = *std::exchange(step_, std::nullopt);
    client_.checker().disturbed();
    if (step.what == Disturbance::move_slots)
        client_.move_slots(rng_);
    else if (step.what == Disturbance::shut_down)
        restart();
    else
        step.target->disturb(step.what == Disturbance::destroy);
}

void SimLoop::disturb() {
    if (calls_.empty()) return;
    const auto call = rng_.pick(calls_);
    if (call->begun && !call->result) disturb(*call, rng_.chance(0.5));
}

void SimLoop::disturb(Call& call, bool destroys) {
    if (call.result) return;
    client_.note([&] { return destroys ? "destroys a lock during an operation" : "cancels an operation"; });
    if (!call.disturbed) call.disturbed.emplace(process_);
    destroys ? call.operation.destroy() : call.operation.cancel();
}

/// The completions of the operations that are under way are not called.
void SimLoop::restart() {
    client_.note([] { return "shuts its loop down"; });
    const Process::IgnoreCrash ignore_crash{process_};  // the shutdown may wait for a millisecond
    nodes_->shut_down();
    client_.checker().expect(watched_.empty(), Rule::one_completion,
                             client_.name() + " still waits for events");
    nodes_.emplace(client_.nodes(), *this, client_.clock(), client_.entropy());
    for (const auto* const destroy : locks_) (*destroy)();
    ++shutdowns_;
    for (const auto& call : calls_) {
        if (!call->begun || call->result) continue;
        call->result = Result{Errc::cancelled};
        process_.wake(*call->waits);
    }
}

}  // namespace redlock::sim

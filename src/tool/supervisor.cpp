#include "supervisor.hpp"

#include "exit_status.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <utility>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// What is left of a group is looked for now and then: where orphans are not ours, nobody tells of their end.
constexpr auto look_for_leftovers = 200ms;

}  // namespace

Supervisor::Supervisor(ProcessGroup& command, Alarm& alarm, Terminal& terminal, bool has_terminal,
                       Policy policy, std::function<std::optional<std::string>()> lost)
    : command_(command),
      alarm_(alarm),
      terminal_(terminal),
      policy_(policy),
      lost_(std::move(lost)),
      has_terminal_(has_terminal) {}

int Supervisor::run() {
    for (;;) {
        command_.look();
        handle_loss();
        if (const auto stop = command_.take_stop()) handle_stop(*stop);
        if (!command_runs()) handle_leftovers();
        if (!command_.alive()) break;
        if (const auto event = alarm_.wait(next_look())) handle(*event);
        if (kill_at_ && boot_clock().now() >= *kill_at_) kill();
    }
    take_terminal_back();
    return stopped_for_loss_ ? exit_status::lost : command_.status().value_or(exit_status::internal);
}

Clock::time_point Supervisor::next_look() const {
    if (command_runs()) return kill_at_.value_or(Clock::never());
    return std::min(kill_at_.value_or(Clock::never()), boot_clock().now() + look_for_leftovers);
}

void Supervisor::handle(int event) {
    switch (event) {
        case SIGCHLD:
        case Alarm::loss: return;  // run() looks
        case SIGCONT: return resume();
        case SIGTSTP: return command_.signal(SIGTSTP);  // when it stops, so do we
        case SIGUSR1:
        case SIGUSR2: return command_.signal(event);
        default: told_to_end_ = true; return command_.signal(event);
    }
}

// ---- Job control

/// The command was stopped by somebody at the terminal, or for want of it.
void Supervisor::handle_stop(int signal) {
    if (!terminal_.exists() || signal == SIGSTOP) return;  // nobody there who would continue us
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if (wants_terminal && terminal_.ours()) return resume();
    stop_ourselves();
}

/// With all of our group, as if the command were one of it: a pipeline, or the script that we were started
/// from. Nothing happens where no shell would continue it. When it does, SIGCONT tells.
void Supervisor::stop_ourselves() {
    take_terminal_back();
    struct sigaction ours {};
    struct sigaction stop {};
    stop.sa_handler = SIG_DFL;
    ::sigaction(SIGTSTP, &stop, &ours);
    ::kill(0, SIGTSTP);
    ::sigaction(SIGTSTP, &ours, nullptr);
}

/// Where the lock was lost meanwhile, the command is to hear of that first.
void Supervisor::resume() {
    handle_loss();
    if (terminal_.ours()) {
        terminal_.give_to(command_.id());
        has_terminal_ = true;
    }
    command_.signal(SIGCONT);
}

void Supervisor::take_terminal_back() {
    if (std::exchange(has_terminal_, false)) terminal_.give_to(::getpgrp());
}

// ---- The end

void Supervisor::handle_loss() {
    const auto why = lost_();
    if (!why || std::exchange(loss_handled_, true)) return;
    const bool stops = command_.alive() && policy_.on_lost != OnLost::ignore;
    std::cerr << "redlock: " << *why << (stops ? "; the command is stopped\n" : "\n");
    if (!stops) return;
    stopped_for_loss_ = true;
    command_.signal(policy_.grace > 0ns || policy_.on_lost == OnLost::term ? SIGTERM : SIGKILL);
    if (policy_.on_lost == OnLost::stop) kill_at_ = boot_clock().now() + policy_.grace;
}

/// Again if need be: what is just being started may not have heard it.
void Supervisor::kill() {
    command_.signal(SIGKILL);
    kill_at_ = boot_clock().now() + look_for_leftovers;
}

/// What a command leaves behind that ended by itself is waited for, as flock does; what is left of one that
/// was ended is ended, too.
void Supervisor::handle_leftovers() {
    if (!command_.alive() || std::exchange(leftovers_handled_, true)) return;
    if (!told_to_end_ && *command_.status() < exit_status::signalled) {
        std::cerr << "redlock: the command has ended; waiting for what it has left running\n";
        return;
    }
    command_.signal(SIGTERM);
    kill_at_ = kill_at_.value_or(boot_clock().now() + policy_.grace);
}

}  // namespace redlock::tool

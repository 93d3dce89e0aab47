#include "supervisor.hpp"

#include "process/exit_status.hpp"
#include "text/words.hpp"

#include <algorithm>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// How often to look for processes that the program has left behind. Nobody reports the end of such a process
/// to us if it has joined the group and is not our child.
constexpr auto look_for_leftovers = 200ms;

/// Stops our whole process group, and returns true when it is continued. Returns false at once if no shell
/// would continue it, because the kernel does not stop an orphaned group. Requires that SIGCONT is blocked.
/// The SIGCONT that has continued the group is still pending afterwards.
bool stop_our_group() {
    sigset_t tstp;
    sigset_t before;
    sigset_t pending;
    ::sigemptyset(&tstp);
    ::sigaddset(&tstp, SIGTSTP);
    auto* const ours = ::signal(SIGTSTP, SIG_DFL);
    ::kill(0, SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &tstp, &before);  // the group stops here
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    (void)::signal(SIGTSTP, ours);
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGCONT) == 1;
}

class Supervisor {
public:
    Supervisor(ProcessGroup& program, const Signals& signals, Terminal& terminal,
               const SupervisionPolicy& policy)
        : program_(program), signals_(signals), terminal_(terminal), policy_(policy) {}

    Ending run() {
        for (;;) {
            handle_loss();
            if (const auto stop = program_.take_stop()) handle_stop(*stop);
            if (program_.take_continuation()) give_terminal();
            if (!program_.alive()) break;
            if (!program_runs()) handle_leftovers();
            if (const auto signal = signals_.wait(next_look())) handle(*signal);
            if (kill_at_ && boot_clock().now() >= *kill_at_) kill();
            program_.refresh();
        }
        const int killed_by = program_.killed_by();
        const bool interrupted = has_terminal_ && !told_to_end_ && !stopped_for_loss_ &&
                                 (killed_by == SIGINT || killed_by == SIGQUIT);
        take_terminal_back();
        const int status =
            stopped_for_loss_ ? exit_status::lost : program_.status().value_or(exit_status::internal);
        return {status, interrupted ? std::optional{killed_by} : std::nullopt, program_.failure() == 0};
    }

private:
    bool program_runs() const noexcept { return !program_.status(); }

    Clock::time_point next_look() const {
        const auto next = boot_clock().now() + (program_runs() ? policy_.look_every : look_for_leftovers);
        const auto at = loss_handled_ ? Clock::never() : policy_.look_at;
        return std::min({kill_at_.value_or(Clock::never()), at, next});
    }

    void handle(int signal) {
        switch (signal) {
            case SIGCHLD: return;  // run() calls refresh()
            case SIGCONT: return resume();
            case SIGTSTP: return stop_program();
            case SIGTTIN:
                return terminal_.exists() ? lend_terminal_to_pipeline() : tell_program_alone(signal);
            case SIGTTOU:
                if (terminal_.exists()) return;  // our messages must not stop or end us
                return tell_program_alone(signal);
            case SIGWINCH:
            case SIGUSR1:
            case SIGUSR2: return (void)program_.signal(signal);
            default:
                told_to_end_ = true;
                leftovers_handled_ = false;
                (void)program_.signal(signal);
        }
    }

    /// Sends a signal that would stop each process of the group that does not handle it. The number of the
    /// program is not reused before refresh().
    void tell_program_alone(int signal) const {
        if (program_runs()) ::kill(program_.id(), signal);
    }

    // ---- Job control

    /// If the program stops, we stop too. A program that is stopped already does not report another stop.
    /// Without a terminal nobody would continue us.
    void stop_program() {
        (void)program_.signal(SIGTSTP);
        if (program_.stopped() && terminal_.exists()) (void)stop_our_group();
    }

    /// The program was stopped from the terminal, or because it needed the terminal, or by SIGSTOP.
    void handle_stop(int signal) {
        const bool for_want = signal == SIGTTIN || signal == SIGTTOU;
        if (!terminal_.exists() && for_want) return resume();  // the kernel stops no orphaned group for it
        if (!terminal_.exists()) return;                       // nobody would continue us
        if (signal == SIGSTOP) {
            // The program has stopped itself, or a debugger has stopped it. We do not stop, because somebody
            // has to extend the lock. But Ctrl-C and Ctrl-Z must reach us, because a stopped program does not
            // react to them.
            take_terminal_back();
            return say_without_waiting("the command is stopped; the lock is still held");
        }
        wants_terminal_ = wants_terminal_ || for_want;
        if (for_want && terminal_.ours()) return resume();
        take_terminal_back();
        if (stop_our_group()) return;  // the pending SIGCONT calls resume()
        // Without us the program would be in our orphaned group, in which Ctrl-Z does nothing and reading
        // fails.
        if (for_want && !terminal_.ours()) (void)program_.signal(SIGHUP);
        resume();
    }

    /// Continues the program. If the lock was lost meanwhile, first ends the program as the policy says.
    void resume() {
        handle_loss();
        if (!terminal_.ours() && !terminal_.is_of(program_.id())) has_terminal_ = false;  // it was taken away
        give_terminal();
        (void)program_.signal(SIGCONT);
    }

    /// Gives the terminal to the program if the program had it before, and we have it now.
    void give_terminal() {
        if (!terminal_.ours() || !wants_terminal_) return;
        terminal_.give_to(program_.id());
        has_terminal_ = true;
    }

    /// A process of our group reads from the terminal. If the program has the terminal, takes it back for
    /// that process. Otherwise we are in the background, and stop as after Ctrl-Z.
    void lend_terminal_to_pipeline() {
        if (!has_terminal_) return stop_program();
        take_terminal_back();
        ::kill(0, SIGCONT);
        wants_terminal_ = false;  // until it needs the terminal
    }

    void take_terminal_back() {
        if (std::exchange(has_terminal_, false)) terminal_.give_to(::getpgrp());
    }

    // ---- The end. Each function acts before it prints a message.

    void handle_loss() {
        const auto why = policy_.look_at_lock();
        if (!why || std::exchange(loss_handled_, true)) return;
        if (!program_.alive() || policy_.on_lost == OnLost::ignore) return say_without_waiting(*why);
        stopped_for_loss_ = true;
        const bool gently = policy_.grace > 0ns || policy_.on_lost == OnLost::term;
        const bool allowed = program_.signal(gently ? SIGTERM : SIGKILL);
        if (policy_.on_lost == OnLost::stop) kill_at_ = boot_clock().now() + policy_.grace;
        const auto* const done =
            policy_.on_lost == OnLost::term ? "; the command is told to end" : "; the command is ended";
        say_without_waiting(*why + (allowed ? done : "; the command may not be signalled"));
    }

    /// Kills the group, and does so again if need be, because a process that was just being started may have
    /// missed the signal.
    void kill() {
        (void)program_.signal(SIGKILL);
        kill_at_ = boot_clock().now() + look_for_leftovers;
    }

    /// If the program has ended by itself, waits for the processes that it has left behind, as flock does. If
    /// the program was ended, ends these processes too.
    void handle_leftovers() {
        if (std::exchange(leftovers_handled_, true)) return;
        if (stopped_for_loss_ && policy_.on_lost == OnLost::term) return;  // they got the signal as well
        if (!told_to_end_ && !stopped_for_loss_ && program_.killed_by() == 0) {
            take_terminal_back();  // for Ctrl-C, which processes in the background do not get
            return say_without_waiting("the command has ended; waiting for what it has left running");
        }
        (void)program_.signal(SIGTERM);
        kill_at_ = kill_at_.value_or(boot_clock().now() + policy_.grace);
    }

    ProcessGroup& program_;
    const Signals& signals_;
    Terminal& terminal_;
    const SupervisionPolicy& policy_;

    bool has_terminal_ = policy_.has_terminal;  // the program has the terminal that we had
    bool wants_terminal_ = has_terminal_;       // the program gets it again when it goes on
    bool told_to_end_ = false;                  // a signal from outside tells the program to end
    bool loss_handled_ = false;
    bool stopped_for_loss_ = false;
    bool leftovers_handled_ = false;
    std::optional<Clock::time_point> kill_at_{};
};

}  // namespace

Ending supervise(ProcessGroup& program, const Signals& signals, Terminal& terminal,
                 const SupervisionPolicy& policy) {
    return Supervisor{program, signals, terminal, policy}.run();
}

}  // namespace redlock::tool

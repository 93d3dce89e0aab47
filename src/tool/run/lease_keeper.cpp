#include "lease_keeper.hpp"

#include "acquisition.hpp"
#include "process/exit_status.hpp"
#include "text/words.hpp"

#include <redlock/result.hpp>

#include "lock/blocking_renewals.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace redlock::tool {
namespace {

constexpr int descriptor_in_keeper = STDERR_FILENO + 1;  // of the other process

/// Returns true if a majority of the nodes has no key of this owner any more. Then no other process can have
/// extended the lock, and what a minority still has is only in the way of others.
bool is_gone_from_a_majority(const Result& loss) {
    const auto refused = std::ranges::count(loss.nodes(), Vote::refused, &NodeReport::vote);
    return !loss.nodes().empty() && static_cast<std::size_t>(refused) >= quorum(loss.nodes().size());
}

/// Whoever reads from a pipe waits until nobody can write into it: it must not be kept open for longer than
/// the other process does.
bool may_keep_stderr(pid_t process) {
    struct stat ours {};
    struct stat theirs {};
    if (::fstat(STDERR_FILENO, &ours) != 0) return false;
    if (S_ISREG(ours.st_mode)) return true;
    const auto path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(STDERR_FILENO);
    return ::stat(path.c_str(), &theirs) == 0 && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/// Keeps this process from what belongs to the caller: signals to its process group and its terminal do not
/// reach this process, nobody waits for the end of this process, and the file system of the current directory
/// can be unmounted. Nothing that is used later has a relative path: the path of a unix socket is absolute,
/// the certificates have been read, and TlsContext has made the paths of SSL_CERT_DIR absolute.
void leave_caller(WatchedProcess& process, const Signals& signals) {
    ::setsid();
    [[maybe_unused]] const int moved = ::chdir("/");
    signals.restore();
    for (const int failed_write : {SIGPIPE, SIGXFSZ}) (void)::signal(failed_write, SIG_IGN);
    const bool keeps_stderr = may_keep_stderr(process.id());
    process.keep_descriptor_only(descriptor_in_keeper);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);
    if (!keeps_stderr) ::dup2(null, STDERR_FILENO);
    ::close(null);
}

/// The keeper has one thread. It makes the passes of a watchdog, and in between it waits for the end of the
/// other process.
int keep(const detail::LeaseState& lock, const WatchedProcess& process) {
    std::optional<Result> loss;
    const auto& resource = lock.terms.names.front();
    auto terms = lock.terms;
    terms.options.on_lost = [&](const Result& result) {
        loss.emplace(Errc::lost);  // remains if there is no memory for the copy
        loss = result;
    };
    const auto state = std::make_shared<detail::LeaseState>(std::move(terms));
    const auto acquisition = state->begin(lock.lease(), std::stop_source{std::nostopstate});
    detail::BlockingRenewals renewals{boot_clock()};
    renewals.add({state, acquisition});
    for (auto next_pass = renewals.make_pass(); !loss; next_pass = renewals.make_pass())
        if (process.ends_before(next_pass)) break;
    if (loss)
        say_without_waiting(resource + ": " + loss->message() + "; process " + std::to_string(process.id()) +
                            " goes on without the lock");
    if (!loss || is_gone_from_a_majority(*loss))
        (void)release_lease(lock.terms.nodes, lock.resources(), lock.lease().owner, lock.terms.options.fair);
    return loss ? exit_status::lost : 0;
}

}  // namespace

pid_t keep_in_background(WatchedProcess& process, const detail::LeaseState& lock, const Signals& signals) {
    const auto child = ::fork();
    if (child != 0) return child;
    int status = exit_status::internal;
    try {
        leave_caller(process, signals);
        status = keep(lock, process);
    } catch (const std::exception& error) {  // the lease ends by itself
        say_without_waiting(lock.terms.names.front() + ": the lock is not kept: " + error.what());
    }
    ::_exit(status);
}

}  // namespace redlock::tool

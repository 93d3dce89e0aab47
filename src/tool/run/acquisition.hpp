// Acquiring for a user who may want to stop waiting: by -n, by -w, or by a signal. Also what `redlock run`
// and the subcommands for a lease share otherwise.
#pragma once

#include "arguments/lock_arguments.hpp"
#include "process/signals.hpp"
#include "wait_reporter.hpp"

#include <redlock/algorithm/lease.hpp>
#include <redlock/lock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::tool {

struct Acquisition {
    Result result;
    std::optional<int> interrupted{};  ///< by this signal
};

/// Acquires the lock in a thread of its own, so that one of `signals` can end the acquisition. Waits as the
/// arguments say. Without a limit, it also waits for nodes. A WaitReporter says so.
Acquisition acquire(Nodes& nodes, Lock& lock, const LockArguments& arguments, const Signals& signals);

/// Calls `operation`, a release or an extension, and calls it again while too few nodes have confirmed it for
/// a cause that may pass: three times in all. One that is executed twice does no harm. Blocks for as long as
/// each call does, mostly one node_timeout.
Result repeated(const std::function<Result()>& operation);

/// Returns a lease of which only the owner is known. Every node may have its key, and the nodes themselves
/// will say whether they do. If a majority still has the key, no other client has held the lock in the
/// meantime.
Lease lease_of(const Owner& owner, Clock::time_point valid_until = Clock::never());

/// Releases the lease of this owner, and deletes the holder description, whatever it says. The description
/// stays if the lock may still be held.
Result release_lease(Nodes& nodes, Resources resources, const Owner& owner, bool fair);

/// Returns the holder description (LockOptions::holder), for example "host=web1 pid=4711 program=backup". It
/// tells a person who wonders about the lock which process holds it.
std::string holder_description(pid_t process, std::string_view program);

/// Returns the same for another process, with the name that the kernel has for it, or "?" if the name is not
/// available.
std::string holder_description(pid_t process);

/// Returns the resource under whose lock `redlock run` has started the caller, or an empty text if there is
/// none, if its lock is a slot of a semaphore, or with --quiet.
std::string resource_of_caller(const LockArguments& arguments);

/// Returns the observer of an acquisition. It says what the acquisition waits for with --verbose, or at a
/// terminal without --quiet.
WaitReporter reporter_of(const LockArguments& arguments);

/// Returns "; now " and the state of the first resource that is not free, in the words of `redlock who`.
/// Names that resource as well, unless it is the only one and RESOURCE, with which the message begins. Asks
/// the nodes once, which blocks for one node_timeout at most. Returns an empty text without asking if the
/// acquisition was not refused, or if the user wants no message.
std::string in_the_way(Nodes& nodes, Resources resources, const LockArguments& arguments,
                       const Result& result);

/// Says on stderr that the operation has failed, and the votes if they are wanted. Returns the exit status.
int conclude(const LockArguments& arguments, const Result& result, const std::string& in_the_way = {});

}  // namespace redlock::tool

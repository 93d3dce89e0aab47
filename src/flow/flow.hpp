// Flows: the coroutines in which the algorithm is written. If a flow needs a round (nodes.hpp) or a pause, it
// suspends. The code that runs it, the *front*, makes the round or the pause, and resumes the flow. Some
// commands whose replies nobody awaits are sent by the flow itself (Steps::send(), or describe_holder() for a
// holder description). The release of unlock() is a round as any other.
//
// A flow blocks in two cases only. A release waits until a watchdog in another thread has ended an extension
// (ReleaseLock). With the blocking front, a command whose replies nobody awaits waits for a moment if
// connections are being made, or if another thread writes it (redis/lane.hpp).
//
//     class Example final : public Steps {
//     public:
//         explicit Example(Operation& operation) : Steps(operation) {}
//         Flow run() {
//             const Request request{...};
//             const auto votes = blank_votes();
//             co_await ask(request, limits_, *votes);      // suspends until the front has made the round
//             co_return outcome_of(*votes);
//         }
//     };
//
//     BlockingOperation operation{nodes};
//     Example example{operation};
//     const auto error = run_blocking(operation, example.run());
//
// The votes of a round are written into a Tally (nodes.hpp), which is *blank* before.
//
// Rules for the text of a flow:
//
//   1. A request, and the flow that another flow awaits, is a named variable. As temporaries in a co_await
//      expression, g++ 12 destroys them too early or twice. (What ask() returns may be a temporary.)
//   2. A catch block cannot contain co_await. Store the std::exception_ptr, and await behind the block.
//   3. A flow is a member function of a Steps object, and has no parameters. Its frame is then in the memory
//      of the operation, and it has no references that can dangle. If a flow needs parameters, a plain
//      function stores them in the object, and returns the flow, such as PlaceInQueue::wait().
//   4. A flow has no Tally as a variable or result, because frames have to be small. The tallies are objects
//      of their own in the memory of the operation, or members of the Steps objects.
//   5. A flow that waits long must not keep a tally, because an event loop can have thousands of such flows.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include <array>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace redlock::flow {

/// The memory of one operation for the frames of its flows and for the votes of their rounds. It is a stack:
/// what was allocated last must be deallocated first. An object that does not fit lies on the heap.
class FrameMemory : detail::NotCopied {
public:
    /// Uses these bytes, which are aligned like std::max_align_t.
    explicit FrameMemory(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}

    void* allocate(std::size_t bytes) {
        const auto needed = header + (bytes + header - 1) / header * header;
        const bool fits = needed <= bytes_.size() - used_;
        overflows_ += fits ? 0U : 1U;
        auto* const memory = fits ? &bytes_[used_] : static_cast<std::byte*>(::operator new(needed));
        if (fits) used_ += needed;
        ::new (memory) FrameMemory* {fits ? this : nullptr};
        return memory + header;
    }

    static void deallocate(void* object) noexcept {
        auto* const memory = static_cast<std::byte*>(object) - header;
        auto* const owner = *std::launder(reinterpret_cast<FrameMemory**>(memory));
        if (owner == nullptr) return ::operator delete(memory);
        owner->used_ = static_cast<std::size_t>(memory - owner->bytes_.data());
    }

    /// Returns how many objects did not fit.
    std::size_t overflows() const noexcept { return overflows_; }

private:
    /// In front of each object lies a pointer to its FrameMemory, null for an object on the heap.
    static constexpr std::size_t header = alignof(std::max_align_t);

    const std::span<std::byte> bytes_;
    std::size_t used_ = 0;
    std::size_t overflows_ = 0;
};

/// Owns an object in the memory for the frames. The owner is always a variable of a flow: variables are
/// destroyed in the reverse order, as the stack demands. It may be reset earlier if its object is the last.
struct DestroyInFrames {
    template <class Object>
    void operator()(Object* object) const noexcept {
        std::destroy_at(object);
        FrameMemory::deallocate(object);
    }
};
template <class Object>
using InFrames = std::unique_ptr<Object, DestroyInFrames>;

class Operation;
class Steps;

/// A coroutine that ends with an error code. It starts when another flow awaits it, or in Operation::start().
class [[nodiscard]] Flow {
public:
    class promise_type {
    public:
        /// The compiler passes *this of the flow, which is a member function of a Steps object.
        static void* operator new(std::size_t bytes, Steps& steps);
        // NOLINTNEXTLINE(misc-new-delete-overloads): only new needs the Steps
        static void operator delete(void* frame) noexcept { FrameMemory::deallocate(frame); }

        Flow get_return_object() noexcept { return Flow{Handle::from_promise(*this)}; }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_value(std::error_code error) noexcept { error_ = error; }
        void unhandled_exception() noexcept { failure_ = std::current_exception(); }

    private:
        friend class Flow;
        friend class Operation;
        std::coroutine_handle<promise_type> caller_{};
        std::error_code error_{};
        std::exception_ptr failure_{};
    };
    using Handle = std::coroutine_handle<promise_type>;

    Flow(Flow&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Flow& operator=(Flow&&) = delete;
    /// Destroys the frame, also if the flow is suspended.
    ~Flow() {
        if (handle_) handle_.destroy();
    }

    /// Returns the error code with which the flow has ended, or throws the exception.
    std::error_code result() const {
        if (handle_.promise().failure_) std::rethrow_exception(handle_.promise().failure_);
        return handle_.promise().error_;
    }

    // Awaiting. The flow runs inside await_ready() up to its first suspension. Its caller then suspends as
    // well, and Operation::resume() continues it when the flow has ended. There is no symmetric transfer,
    // because with g++ 12 the stack would grow with each transfer.
    bool await_ready() const {
        handle_.resume();
        return handle_.done();
    }
    void await_suspend(Handle caller) const noexcept { handle_.promise().caller_ = caller; }
    std::error_code await_resume() const { return result(); }

private:
    friend class Operation;
    explicit Flow(Handle handle) noexcept : handle_(handle) {}

    Handle handle_;
};

/// The round that a flow waits for.
struct AwaitedRound {
    const Request* request;
    const RoundLimits* limits;
    Tally* tally;  ///< blank
};

/// The pause that a flow waits for. It ends at this instant, or when a stop is requested.
struct AwaitedPause {
    Clock* clock;
    Clock::time_point until;
    const std::stop_token* stop;
};

/// The turn of a waiter to enter the queue (loop/local_queues.hpp). The blocking front gives each waiter its
/// turn at once.
struct Turn {
    Resources resource;
    Clock::time_point since;          ///< when the waiter began to wait; the oldest waiter is the first
    const RoundLimits* limits;        ///< their deadline and stop say when the flow goes on without a turn
    Clock::time_point attempt_due{};  ///< when an attempt is made even if the turn has not come
    /// The place of this waiter: as the home node has reported it last or, after a wait that has ended
    /// without a turn, as the front has computed it from the last report to any waiter for the resource.
    std::optional<QueuePlace> place{};
    bool has_come = false;  ///< The front writes whether it is the turn of this waiter.
};

/// The turn that a flow waits for. A waiter keeps its turn until the Waiter is destroyed.
struct AwaitedTurn {
    Waiter* waiter;
    Turn* turn;
};

/// A call of Waiter::listen() that a flow waits for. The front writes its result into `listens`.
struct AwaitedListen {
    Waiter* waiter;
    NodeSet homes;
    const RoundLimits* limits;
    bool* listens;
};

/// A call of Waiter::sleep() that a flow waits for. The front writes its result into `message`.
struct AwaitedMessage {
    Waiter* waiter;
    Clock::time_point until;
    const std::stop_token* stop;
    Waiter::WakeUp* message;
};

/// What a flow waits for; std::monostate if it has ended.
using Awaited =
    std::variant<std::monostate, AwaitedRound, AwaitedPause, AwaitedTurn, AwaitedListen, AwaitedMessage>;

/// One operation, such as one acquire() with all its attempts: the memory of its flows, and the thing that
/// they wait for. A front does this:
///
///     Flow flow = steps.run();
///     for (operation.start(flow); !operation.ended(); operation.resume())
///         ...  // do what operation.awaited() describes
///     flow.result();
///
/// A front can destroy a suspended flow. It then calls send_unreleased() of the Steps object, if there is
/// such a function. This sends the commands that are left to do.
class Operation : detail::NotCopied {
public:
    /// `memory` is that of the frames, see FrameMemory. It must outlive the operation.
    Operation(Nodes& nodes, std::span<std::byte> memory) noexcept : nodes_(nodes), frames_(memory) {}

    /// Runs the flow until it waits for something, or until it has ended. Requires that the flow has not
    /// started.
    void start(const Flow& flow) { continue_with(flow.handle_); }

    /// Returns what the flow waits for. The pointers in it are valid until resume().
    const Awaited& awaited() const noexcept { return awaited_; }
    bool ended() const noexcept { return std::holds_alternative<std::monostate>(awaited_); }

    /// Continues the flow when it need not wait any more. `failure` is thrown in the flow if it is not null.
    void resume(std::exception_ptr failure = {}) {
        failure_ = std::move(failure);
        awaited_ = {};
        continue_with(innermost_);
    }

    Nodes& nodes() const noexcept { return nodes_; }
    const FrameMemory& frames() const noexcept { return frames_; }

private:
    friend class Steps;
    friend class Flow::promise_type;

    /// Resumes this flow. If it ends, resumes its caller, and so on.
    static void continue_with(Flow::Handle flow) {
        for (flow.resume(); flow.done() && flow.promise().caller_; flow.resume())
            flow = flow.promise().caller_;
    }

    Nodes& nodes_;
    FrameMemory frames_;
    Awaited awaited_{};
    Flow::Handle innermost_{};
    std::exception_ptr failure_{};
};

/// An operation with its memory.
template <std::size_t size>
class OperationWithMemory : public Operation {
public:
    explicit OperationWithMemory(Nodes& nodes) : Operation(nodes, bytes_) {}

private:
    alignas(std::max_align_t) std::array<std::byte, size> bytes_;  // without {}, which would set all to zero
};

/// The memory for all frames of any operation. The tests check that it suffices.
inline constexpr std::size_t memory_of_frames = 2048;

/// An operation of the blocking front. Its frames need no heap, nor do the votes of five nodes on an attempt
/// and its release. The 64 bytes are for the instants of a RoundResult, the header, and the alignment.
using BlockingOperation = OperationWithMemory<memory_of_frames + 2 * (sizeof(Tally) + 64)>;

/// A class whose member functions are flows. The flows of several such objects can belong to one operation.
class Steps : detail::NotCopied {
protected:
    explicit Steps(Operation& operation) noexcept : operation_(operation) {}
    ~Steps() = default;

    Operation& operation() const noexcept { return operation_; }
    /// Returns the nodes. A flow must not call Nodes::ask(), because it would wait.
    Nodes& nodes() const noexcept { return operation_.nodes_; }
    /// Sends a command whose replies nobody awaits. With the blocking front, waits while connections are made
    /// (case 3 in quorum_round.hpp), but at most until `deadline`. In an event loop, does not wait. Returns
    /// false if there is no memory.
    bool send(const Request& request, Clock::time_point deadline = Clock::never()) const noexcept {
        try {
            return detail::has_memory_for(
                [&] { (void)nodes().ask(request, {.deadline = deadline, .awaits_answers = false}); });
        } catch (...) {  // a Nodes of the user that throws
            return true;
        }
    }

    /// Makes an object in the memory of the operation, from the value that `make` returns.
    template <class Make>
    auto make_in_frames(Make make) const {
        using Object = std::invoke_result_t<Make>;
        auto* const memory = operation_.frames_.allocate(sizeof(Object));
        try {
            return InFrames<Object>{::new (memory) Object(make())};
        } catch (...) {
            FrameMemory::deallocate(memory);
            throw;
        }
    }
    /// Returns a blank tally for a round.
    InFrames<Tally> blank_votes() const {
        return make_in_frames([this] { return nodes().blank_tally(); });
    }

    /// The awaiter of ask() and of the functions below.
    struct Wait {
        Operation& operation;
        Awaited awaited;
        bool await_ready() const noexcept { return false; }
        void await_suspend(Flow::Handle flow) const noexcept {
            operation.awaited_ = awaited;
            operation.innermost_ = flow;
        }
        void await_resume() const {
            if (operation.failure_) std::rethrow_exception(std::exchange(operation.failure_, nullptr));
        }
    };

    // What the arguments of these functions refer to must live until the flow continues.

    /// Awaits a round. `tally` must be blank.
    Wait ask(const Request& request, const RoundLimits& limits, Tally& tally) const noexcept {
        return {operation_, AwaitedRound{&request, &limits, &tally}};
    }

    /// Awaits a pause until this instant, or until a stop is requested.
    Wait pause(Clock& clock, Clock::time_point until, const std::stop_token& stop) const noexcept {
        return {operation_, AwaitedPause{&clock, until, &stop}};
    }

    /// Awaits anything that a flow can wait for. Rounds and pauses have the functions above.
    Wait wait_for(Awaited awaited) const noexcept { return {operation_, awaited}; }

private:
    friend class Flow::promise_type;
    Operation& operation_;
};

inline void* Flow::promise_type::operator new(std::size_t bytes, Steps& steps) {
    return steps.operation_.frames_.allocate(bytes);
}

/// Makes the round, the pause or the like that the flow waits for, in this thread. Returns its exception, or
/// null.
std::exception_ptr do_awaited(const Operation& operation) noexcept;

/// The blocking front: runs the flow to its end in this thread. Returns its result.
std::error_code run_blocking(Operation& operation, const Flow& flow);

}  // namespace redlock::flow
